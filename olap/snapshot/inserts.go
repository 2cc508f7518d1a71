package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

const (
	// insertPatience bounds how long a first page waits for inserts in flight.
	insertPatience = 2 * time.Second
	insertPoll     = 2 * time.Millisecond

	// RefreshQueryPrefix begins the query_id of every statement that writes into the rollup. Such an insert stores
	// nothing that an inclusion boundary has to wait for.
	RefreshQueryPrefix = "runlens-refresh-"

	// The list has at least this query itself. It is filtered in Go: every function in the text costs ClickHouse more
	// than the rows do.
	readInserts = "SELECT now64(3, 'UTC'), elapsed, query_kind, query_id, query FROM system.processes"
)

// RefreshQueryID is a new query_id for a statement of a refresher, or of another process that has a claim: it
// shows others that the process is alive, and that the statement stores no records.
func RefreshQueryID() string { return RefreshQueryPrefix + rand.Text() }

// Now is the store's clock, cut to the millisecond: the clock that stamps rows. Whatever was acknowledged before the
// call has an earlier or the same stamp, unless the clock was set back (Snapshot.Clock).
func Now(ctx context.Context, conn driver.Conn) (time.Time, error) {
	var now time.Time
	if err := conn.QueryRow(ctx, "SELECT now64(3, 'UTC')").Scan(&now); err != nil {
		return time.Time{}, failure.Of("read the clock", err)
	}
	return now, nil
}

// AwaitInserts waits, two seconds at most, for the inserts that began at or before an instant more than a millisecond
// ago. It returns that instant, or an earlier one that no insert in flight precedes.
func AwaitInserts(ctx context.Context, conn driver.Conn, at time.Time) (time.Time, error) {
	for deadline := time.Now().Add(insertPatience); ; {
		inserts, err := ReadInserts(ctx, conn)
		if err != nil || inserts.Oldest.After(at) {
			return at, err
		}
		if time.Now().After(deadline) {
			return inserts.Oldest.Add(-time.Millisecond), nil
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

// Inserts are the inserts in flight.
type Inserts struct {
	Now time.Time // the store's clock, read before the list
	// Oldest is when the oldest insert of records began, rather a little earlier than later; Now where there is none.
	Oldest time.Time
	// Refreshing says that a statement of a refresher runs.
	Refreshing bool
}

// ReadInserts reads the inserts in flight.
func ReadInserts(ctx context.Context, conn driver.Conn) (in Inserts, err error) {
	rows, err := conn.Query(OneThread(ctx), readInserts)
	if err != nil {
		return in, failure.Of("read the inserts in flight", err)
	}
	defer rows.Close()
	var longest float64
	for rows.Next() {
		var seconds float64
		var kind, id, text string
		if err := rows.Scan(&in.Now, &seconds, &kind, &id, &text); err != nil {
			return in, failure.Of("read the inserts in flight", err)
		}
		if strings.HasPrefix(id, RefreshQueryPrefix) {
			in.Refreshing = true
		} else if kind == "Insert" && (strings.Contains(text, schema.TableRuns) ||
			strings.Contains(text, schema.TableAttributions)) {
			longest = max(longest, seconds)
		}
	}
	if err := rows.Err(); err != nil {
		return in, failure.Of("read the inserts in flight", err)
	}
	if in.Now.IsZero() {
		return in, errors.New("snapshot: read the inserts in flight: system.processes lacks the query that reads it")
	}
	in.Oldest = in.Now.Add(-time.Duration(longest * float64(time.Second))).Truncate(time.Millisecond)
	return in, nil
}

// OneThread is a context for a query of so few rows that a second thread costs more than it helps.
func OneThread(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
}
