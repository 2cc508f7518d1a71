package olaptest

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// Stamps move the clock by which a database stamps what is stored in it. Held.Shift does so for what statements read.
type Stamps struct {
	conn       driver.Conn
	statements []string // that define who stamps, with the store's clock
}

// StampsOf reads what stamps rows in the database of a connection: views, and defaults of columns.
func StampsOf(t Failer, conn driver.Conn) *Stamps {
	t.Helper()
	s := &Stamps{conn: conn}
	err := conn.QueryRow(context.Background(), `SELECT arrayConcat(
		(SELECT groupArray('ALTER TABLE ' || name || ' MODIFY QUERY ' || as_select) FROM system.tables
			WHERE database = currentDatabase() AND as_select LIKE '%now64(3%'),
		(SELECT groupArray('ALTER TABLE ' || table || ' MODIFY COLUMN ' || name || ' DEFAULT ' || default_expression)
			FROM system.columns WHERE database = currentDatabase() AND default_expression LIKE '%now64(3%'
			AND table IN ('runs', 'attributions')))`).Scan(&s.statements)
	if err == nil && len(s.statements) < 8 {
		err = fmt.Errorf("%d views and columns stamp what is stored", len(s.statements))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Shift makes stamps so much ahead of the store's clock, to the millisecond.
func (s *Stamps) Shift(t Failer, by time.Duration) {
	t.Helper()
	var group errgroup.Group
	for _, statement := range s.statements {
		group.Go(func() error {
			return s.conn.Exec(context.Background(), shifted(statement, by.Milliseconds()))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
