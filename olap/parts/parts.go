// Package parts finds which rows came into a table since it was read, without reading the others. It rests on no clock
// and no order of inserts, but on what ClickHouse does with parts (State.since, schema/decisions/key-lookup.md): a row
// is in a part as soon as it can be read, and a part never changes.
package parts

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// attempts is how often parts are listed if some are merged before their rows can be read.
const attempts = 3

// A Table is a table of one partition, and what its rows are told apart by.
type Table struct {
	Name   string
	Column string // a text
	Most   uint64 // rows that are read to find what changed, inclusive; of more, anything may have
}

// Changes say which rows came into a table from one State to a later one.
type Changes struct {
	State  State // the later one
	All    bool  // any rows may have come, gone or changed
	Values []string
}

// Changed returns which values the column has in the rows that came into a table since an earlier state, and perhaps in
// others, with repeats. A first state, of which everything is to be read, is that of before it is read.
func (t Table) Changed(ctx context.Context, conn driver.Conn, earlier State) (Changes, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
	for range attempts {
		now, err := t.read(ctx, conn)
		if err != nil {
			return Changes{}, err
		}
		added, ok := now.since(earlier)
		if rows := rowsOf(added); !ok || rows > t.Most {
			return Changes{State: now, All: true}, nil
		}
		values, complete, err := t.readAdded(ctx, conn, added)
		if err != nil || complete {
			return Changes{State: now, Values: values}, err
		}
	}
	// The state is the earlier one, so that nothing is skipped.
	return Changes{State: earlier, All: true}, nil
}

// read lists the parts. It costs the same whatever they hold.
func (t Table) read(ctx context.Context, conn driver.Conn) (State, error) {
	var rows []partRow
	err := conn.Select(ctx, &rows, "SELECT name, path, hash_of_all_files, rows, now64(3, 'UTC') AS now,"+
		" uptime() AS uptime FROM system.parts WHERE active AND database = currentDatabase()"+
		" AND table = {table:String}", clickhouse.Named("table", t.Name))
	if err != nil {
		return State{}, fmt.Errorf("parts: list those of %s: %w", t.Name, err)
	}
	return stateOf(rows), nil
}

// readAdded returns the values in parts. It reports false if it did not find all of their rows: a part was merged since
// it was listed.
func (t Table) readAdded(ctx context.Context, conn driver.Conn, parts []part) (values []string, ok bool, err error) {
	if len(parts) == 0 {
		return nil, true, nil
	}
	names, missing := make([]string, len(parts)), map[string]uint64{}
	for i, p := range parts {
		names[i], missing[p.name] = p.name, p.rows
	}
	var rows []struct {
		Part  string `ch:"part"`
		Value string `ch:"value"`
	}
	err = conn.Select(ctx, &rows, "SELECT toString(_part) AS part, toString("+t.Column+") AS value FROM "+t.Name+
		" WHERE _part IN {parts:Array(String)}", clickhouse.Named("parts", names))
	if err != nil {
		return nil, false, fmt.Errorf("parts: read what came into %s: %w", t.Name, err)
	}
	for _, row := range rows {
		missing[row.Part]--
		values = append(values, row.Value)
	}
	for _, n := range missing {
		if n != 0 {
			return nil, false, nil
		}
	}
	return values, true, nil
}

func rowsOf(parts []part) (rows uint64) {
	for _, p := range parts {
		rows += p.rows
	}
	return rows
}
