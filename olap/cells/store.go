package cells

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	self       = "self" // the subject of a store's own name
	slotPrefix = "slot:"
	// first is the revision of what is placed first.
	first = 1
)

var ofAll = sql.AllOrganizations("where organizations are is no row of any of them")

// said is what a store says.
type said struct {
	name  string // of itself; empty for none
	slots map[int]place
}

type place struct {
	cell     string
	revision uint64
}

// readPlacement reads all cells that the newest revision of each subject names.
var readPlacement = sql.Select{
	Columns: []string{"subject", "groupUniqArray(cell)", "any(revision)"}, From: ofAll(schema.TablePlacement),
	Where: []string{"(subject, revision) IN" + sql.In(sql.Select{
		Columns: []string{"subject", "max(revision)"}, From: ofAll(schema.TablePlacement), Group: []string{"subject"},
	})},
	Group: []string{"subject"},
}.String()

func read(ctx context.Context, conn driver.Conn) (said, error) {
	s := said{slots: map[int]place{}}
	rows, err := conn.Query(ctx, readPlacement)
	if err != nil {
		return s, fmt.Errorf("read where organizations are: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var subject string
		var in []string
		var revision uint64
		if err := rows.Scan(&subject, &in, &revision); err != nil {
			return s, fmt.Errorf("read where organizations are: %w", err)
		}
		if len(in) > 1 {
			return s, twice(subject, in)
		}
		if text, ok := strings.CutPrefix(subject, slotPrefix); ok {
			if slot, err := strconv.Atoi(text); err == nil && slot >= 0 && slot < Slots {
				s.slots[slot] = place{in[0], revision}
			}
		} else if subject == self {
			s.name = in[0]
		}
	}
	return s, rows.Err()
}

func twice(subject string, in []string) error {
	return fmt.Errorf("%s was placed in %s at once, by files of cells that differ: stop everything, empty the table "+
		"placement of every cell and start with one file", subject, strings.Join(in, " and in "))
}

// hasRecords reports whether a store has rows of any organization.
func hasRecords(ctx context.Context, conn driver.Conn) (bool, error) {
	for _, table := range []string{schema.TableAPIKeys, schema.TableAgents, schema.TableRuns, schema.TableAttributions} {
		var rows uint64
		count := sql.Select{Columns: []string{"count()"}, From: ofAll(table)}
		if err := conn.QueryRow(ctx, count.String()).Scan(&rows); err != nil {
			return false, fmt.Errorf("find out whether a cell has records: %w", err)
		}
		if rows > 0 {
			return true, nil
		}
	}
	return false, nil
}

type row struct{ subject, cell string }

func (p *Placement) rows() []row {
	rows := make([]row, Slots)
	for slot, cell := range p.cells {
		rows[slot] = row{slotPrefix + strconv.Itoa(slot), cell}
	}
	return rows
}

// write stores rows of the first revision, all or none of them.
func write(ctx context.Context, conn driver.Conn, rows ...row) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+schema.TablePlacement+" (subject, cell, revision)")
	for i := 0; i < len(rows) && err == nil; i++ {
		err = batch.Append(rows[i].subject, rows[i].cell, uint64(first))
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		return fmt.Errorf("store where organizations are: %w", err)
	}
	return nil
}
