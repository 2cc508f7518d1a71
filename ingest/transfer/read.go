package transfer

import (
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// patience is how long what fails for a passing reason is tried again.
const patience = 10 * time.Second

// Empty reports whether a store has no rows, derived ones included, but for the names of its migrations.
func Empty(ctx context.Context, conn driver.Conn) (bool, error) {
	var rows *uint64
	const stored = "SELECT sum(total_rows) FROM system.tables WHERE database = currentDatabase()" +
		" AND name NOT LIKE 'schema\\_%'"
	err := conn.QueryRow(ctx, stored).Scan(&rows)
	return rows != nil && *rows == 0, err
}

// Whole returns ErrUnfinished or ErrUnrestored for a store that a copy or a restore was to fill and has not: of what it
// lacks nobody can be answered, and what is stored in it would be dropped when the copy goes on.
func Whole(ctx context.Context, conn driver.Conn) error {
	unfinished, err := checkpoint.Names(ctx, conn, markPrefix)
	switch {
	case err != nil || len(unfinished) == 0:
		return err
	case slices.Contains(unfinished, restoreMark):
		return ErrUnrestored
	default:
		return ErrUnfinished
	}
}

// ended reports whether a copy into a store has ended: its checkpoint was cleared, and stays.
func ended(ctx context.Context, conn driver.Conn, mark string) (bool, error) {
	marks := sql.Select{Columns: []string{"count()"}, From: whole(schema.TableCheckpoints),
		Where: []string{"name = {mark:String}"}}
	var n uint64
	err := conn.QueryRow(ctx, marks.String(), clickhouse.Named("mark", mark)).Scan(&n)
	return n > 0, err
}

// partitions are those of a store that are copied, in the order in which they are.
func partitions(ctx context.Context, conn driver.Conn) (all []partition, err error) {
	err = conn.Select(ctx, &all, "SELECT table, partition_id, any(engine) AS engine, sum(rows) AS rows FROM system.parts"+
		" WHERE active AND database = currentDatabase() AND has({tables:Array(String)}, table)"+
		" GROUP BY table, partition_id ORDER BY indexOf({tables:Array(String)}, table), partition_id",
		clickhouse.Named("tables", tables))
	return all, err
}

// inserts is how many inserts have ended or failed since ClickHouse was started.
func inserts(ctx context.Context, conn driver.Conn) (n uint64, err error) {
	err = conn.QueryRow(ctx, "SELECT sum(value) FROM system.events WHERE event = 'InsertQuery'").Scan(&n)
	return n, err
}
