// Package snapshot reads what a question has to know of the moment at which it is asked: the inclusion boundary, how far
// records are refreshed, and the newest records.
package snapshot

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

const (
	// insertPatience bounds how long a first page waits for inserts in flight.
	insertPatience = 2 * time.Second
	insertPoll     = 2 * time.Millisecond
	// tick is a millisecond, the unit of stamps, and a little for a clock that is being slowed down.
	tick = time.Millisecond + 10*time.Microsecond
)

const (
	readNow = "SELECT now64(3, 'UTC')"

	// now64 is a constant of the query, set before the list of processes is read. The list has at least
	// this query itself. It is sifted here: every function in the text costs ClickHouse more than the rows do.
	readInserts = "SELECT now64(3, 'UTC'), elapsed, query_kind, query_id, query FROM system.processes"
)

// A Boundary is what a statement has to be told of the moment at which its request is answered. To read one takes
// one round trip, unless inserts are waited for.
type Boundary struct {
	AsOf time.Time // rows first stored after it are left out (contract 4.1)
}

// Now is the boundary at the store's clock, cut to the millisecond: the clock that stamps rows when they are first
// stored. Whatever was acknowledged before the call has an earlier or the same stamp.
func Now(ctx context.Context, conn driver.Conn) (Boundary, error) {
	var now time.Time
	if err := conn.QueryRow(ctx, readNow).Scan(&now); err != nil {
		return Boundary{}, failure.Of("read the clock", err)
	}
	return Boundary{AsOf: now}, nil
}

// PageBoundary is a boundary that several pages can share (contract 4.1).
//
// A row is stamped when its insert begins and seen when it ends. A row stamped at or before the
// boundary but not seen by the first page would appear on a later one. So the boundary is the millisecond before the
// store's now: whatever begins to be inserted from now on is stamped behind it, and every insert that began before
// has ended when PageBoundary returns, or the boundary is moved. Nothing acknowledged before the call is left out by
// that: a millisecond is let pass before the clock is read, so its stamp is before now.
//
// PageBoundary waits two seconds at most for the inserts that began at or before the boundary. If one takes longer, the
// boundary is moved before its beginning: then rows that other inserts stored since are left out as well, and
// asOf says so.
func PageBoundary(ctx context.Context, conn driver.Conn) (Boundary, error) {
	if err := Pause(ctx, tick); err != nil {
		return Boundary{}, err
	}
	now, oldest, _, err := InFlight(ctx, conn)
	if err != nil {
		return Boundary{}, err
	}
	asOf := now.Add(-time.Millisecond)
	if !oldest.After(asOf) {
		if err := Pause(ctx, insertPoll); err != nil {
			return Boundary{}, err
		}
		asOf, err = AwaitInserts(ctx, conn, asOf)
	}
	return Boundary{AsOf: asOf}, err
}

// AwaitInserts waits, two seconds at most, for the inserts that began at or before an instant more than a millisecond ago. It
// returns that instant, or an earlier one for which nothing is to be waited.
func AwaitInserts(ctx context.Context, conn driver.Conn, at time.Time) (time.Time, error) {
	for deadline := time.Now().Add(insertPatience); ; {
		_, oldest, _, err := InFlight(ctx, conn)
		if err != nil || oldest.After(at) {
			return at, err
		}
		if time.Now().After(deadline) {
			return oldest.Add(-time.Millisecond), nil
		}
		if err := Pause(ctx, insertPoll); err != nil {
			return at, err
		}
	}
}

// Pause waits for a while, or for the end of ctx, which is the error.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// InFlight tells the store's clock and, read after it, the begin of the oldest insert of records in flight, rather a little
// earlier than later; without any, the clock. Those that refresh records do not count: that there is one is told apart.
func InFlight(ctx context.Context, conn driver.Conn) (now, oldest time.Time, refreshing bool, err error) {
	rows, err := conn.Query(oneThread(ctx), readInserts)
	if err != nil {
		return now, oldest, false, failure.Of("read the inclusion boundary", err)
	}
	defer rows.Close()
	var longest float64
	for rows.Next() {
		var seconds float64
		var kind, id, text string
		if err := rows.Scan(&now, &seconds, &kind, &id, &text); err != nil {
			return now, oldest, false, failure.Of("read the inclusion boundary", err)
		}
		if strings.HasPrefix(id, RefreshQueryPrefix) {
			refreshing = true
		} else if kind == "Insert" && (strings.Contains(text, schema.TableRuns) || strings.Contains(text, schema.TableAttributions)) {
			longest = max(longest, seconds)
		}
	}
	if err := rows.Err(); err != nil {
		return now, oldest, false, failure.Of("read the inclusion boundary", err)
	}
	if now.IsZero() {
		return now, oldest, false, errors.New("snapshot: read the inclusion boundary: system.processes lacks the query that reads it")
	}
	return now, now.Add(-time.Duration(longest * float64(time.Second))).Truncate(time.Millisecond), refreshing, nil
}
