package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrRowPolicy is returned when ClickHouse hides rows of the database from the user. It hides them from every
// statement, without an error: answers, and what is derived of them, would lack these rows. From then on the Server
// sends no statement, also when the policy is gone: what is cached may be of meanwhile.
var ErrRowPolicy error = permanent("a row policy of ClickHouse hides rows from the user; see SHOW ROW POLICIES, drop " +
	"it or make one for the user with USING 1, and start again")

// policiesAfter is how soon a policy is noticed that is made while the process runs. It is a variable for tests.
var policiesAfter = 10 * time.Second

// policiesPatience bounds one look.
const policiesPatience = 10 * time.Second

// policies looks for row policies of a server that runs elsewhere. nil is of the embedded engine, where nobody can make
// one. It is safe for concurrent use.
type policies struct {
	conn   driver.Conn
	tables []string
	found  atomic.Pointer[error]
	end    context.CancelFunc
}

// watchPolicies looks once, and then until the end of the returned policies. The error is an ErrRowPolicy, or that of
// ctx.
func watchPolicies(ctx context.Context, conn driver.Conn, config Config) (*policies, error) {
	p := &policies{conn: conn, tables: config.Tables}
	if err := p.look(ctx); errors.Is(err, ErrRowPolicy) {
		return nil, err
	} else if ctx.Err() != nil { // nobody waits for the store any more, and nothing is to be told of it
		return nil, ctx.Err()
	} else if err != nil {
		config.Logger.Warn("it is not known whether row policies hide rows from the user", "error", err)
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	p.end = end
	after := policiesAfter // the goroutine outlives tests that change it
	go func() {
		for p.err() == nil {
			select {
			case <-watching.Done():
				return
			case <-time.After(after):
			}
			if err := p.look(watching); errors.Is(err, ErrRowPolicy) {
				config.Logger.Error("nothing is read or stored any more", "error", err)
			}
		}
	}()
	return p, nil
}

func (p *policies) close() {
	if p != nil {
		p.end()
	}
}

// err is ErrRowPolicy once a policy was found, with its table.
func (p *policies) err() error {
	if p == nil {
		return nil
	}
	if found := p.found.Load(); found != nil {
		return *found
	}
	return nil
}

// look reads the plan of a statement over the tables, in which ClickHouse writes the filter of a row policy. That needs
// no right to read policies. Where a table is empty there is nothing to plan, and no row is hidden.
func (p *policies) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, policiesPatience)
	defer cancel()
	var tables []string
	err := p.conn.QueryRow(ctx, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase()"+
		" AND engine LIKE '%MergeTree' AND name IN {tables:Array(String)}",
		clickhouse.Named("tables", p.tables)).Scan(&tables)
	if err != nil || len(tables) == 0 {
		return err
	}
	for i, table := range tables {
		tables[i] = "SELECT 1 FROM " + quoteIdentifier(table) + " WHERE 0"
	}
	var plan []struct {
		Line string `ch:"explain"`
	}
	if err := p.conn.Select(ctx, &plan, "EXPLAIN PLAN actions = 1 "+strings.Join(tables, " UNION ALL ")); err != nil {
		return err
	}
	table := ""
	for _, one := range plan {
		if _, name, reads := strings.Cut(one.Line, "ReadFromMergeTree ("); reads {
			table = strings.TrimSuffix(name, ")")
		}
		if strings.Contains(one.Line, "Row level filter column:") { // there is none for USING 1
			err := fmt.Errorf("%s: %w", table, ErrRowPolicy)
			p.found.Store(&err)
			return err
		}
	}
	return nil
}

// A refusedRow is the row of a statement that was not sent.
type refusedRow struct{ err error }

func (r refusedRow) Err() error           { return r.err }
func (r refusedRow) Scan(...any) error    { return r.err }
func (r refusedRow) ScanStruct(any) error { return r.err }
