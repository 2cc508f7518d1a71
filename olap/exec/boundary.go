package exec

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
)

const (
	// settlePatience bounds how long a first page waits for inserts in flight.
	settlePatience = 2 * time.Second
	settlePoll     = 2 * time.Millisecond
)

const (
	readNow = "SELECT toUnixTimestamp64Milli(now64(3))"

	// now64 is a constant of the query, set before the list of processes is read, so that the
	// starts it gives are at most the true ones. 0 stands for no insert.
	readOldestInsert = "SELECT toInt64(min(toUnixTimestamp64Milli(now64(3)) - ceil(1000 * elapsed))) FROM system.processes" +
		" WHERE query_kind = 'Insert' AND NOT startsWith(query_id, '" + SettleQueryPrefix + "') AND match(query, '" + schema.TableRuns + "|" + schema.TableAttributions + "')"
)

// Now is the store's clock, cut to the millisecond: the clock that stamps rows when they are first
// stored. Whatever was acknowledged before the call has an earlier or the same stamp.
func Now(ctx context.Context, conn driver.Conn) (time.Time, error) {
	millis, err := readMillis(ctx, conn, readNow)
	return time.UnixMilli(millis).UTC(), err
}

// Settle makes now, just read by Now, an inclusion boundary that several pages can share (contract 4.1).
//
// A row is stamped when its insert begins and seen when it ends. A row stamped at or before the
// boundary but not seen by the first page would appear on a later one. Settle therefore waits, two
// seconds at most, for the inserts that began at or before now. If one takes longer, the
// boundary is moved before its beginning: then rows that other inserts stored since are left out as well, and
// asOf says so.
func Settle(ctx context.Context, conn driver.Conn, now time.Time) (time.Time, error) {
	deadline := time.Now().Add(settlePatience)
	// Stamps are cut to the millisecond: rows may still get the stamp now until that millisecond has passed.
	pause := time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(pause):
		}
		millis, err := readMillis(ctx, conn, readOldestInsert)
		if err != nil {
			return time.Time{}, err
		}
		oldest := time.UnixMilli(millis).UTC()
		if millis == 0 || oldest.After(now) {
			return now, nil
		}
		if time.Now().After(deadline) {
			return oldest.Add(-time.Millisecond), nil
		}
		pause = settlePoll
	}
}

func readMillis(ctx context.Context, conn driver.Conn, sql string) (int64, error) {
	var millis int64
	if err := conn.QueryRow(ctx, sql).Scan(&millis); err != nil {
		return 0, failure("read the inclusion boundary", err)
	}
	return millis, nil
}
