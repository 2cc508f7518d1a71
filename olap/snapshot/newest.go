package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// Newest returns the event clocks of the newest run and the newest attribution record of all organizations, zero where
// there is none. ClickHouse has them without reading rows.
func Newest(ctx context.Context, conn driver.Conn) (run, attribution time.Time, err error) {
	if run, err = newest(ctx, conn, schema.TableRuns, "created_at"); err == nil {
		attribution, err = newest(ctx, conn, schema.TableAttributions, "occurred_at")
	}
	return run, attribution, err
}

func newest(ctx context.Context, conn driver.Conn, table, clock string) (time.Time, error) {
	var rows uint64
	var at time.Time
	if err := conn.QueryRow(ctx, "SELECT count(), max("+clock+") FROM "+table).Scan(&rows, &at); err != nil {
		return time.Time{}, failure.Of("read the newest row", err)
	}
	if rows == 0 {
		return time.Time{}, nil
	}
	return at.UTC(), nil
}
