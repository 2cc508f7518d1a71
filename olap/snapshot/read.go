package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// RefreshQueryPrefix begins the query_id of every statement that writes into the rollup. Such an insert stores nothing
// that an inclusion boundary has to wait for.
const RefreshQueryPrefix = "runlens-refresh-"

// RefreshQueryID is a new query_id for a statement of a refresher, or of another process that has a claim: it
// shows others that the process is alive, and that the statement stores no records.
func RefreshQueryID() string { return RefreshQueryPrefix + rand.Text() }

// Now is the store's clock, cut to the millisecond: the clock that stamps rows. Whatever was acknowledged before the
// call has an earlier or the same stamp, unless the clock was set back (Snapshot.Clock).
func Now(ctx context.Context, conn driver.Conn) (time.Time, error) {
	var now time.Time
	if err := conn.QueryRow(ctx, "SELECT "+readNow).Scan(&now); err != nil {
		return time.Time{}, failure.Of("read the clock", err)
	}
	return now, nil
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
	ctx, end := trace.Statement(ctx, "inserts in flight")
	defer func() { end(err) }()
	rows, err := conn.Query(oneThread(ctx), readInserts)
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

const (
	// insertPatience bounds how long a first page waits for inserts in flight.
	insertPatience = 2 * time.Second
	// insertPoll is the least pause between two looks at them.
	insertPoll = 2 * time.Millisecond
)

// AwaitInserts waits, two seconds at most, for the inserts that began at or before an instant more than a millisecond
// ago. It returns that instant, or an earlier one that no insert in flight precedes.
func AwaitInserts(ctx context.Context, conn driver.Conn, at time.Time) (time.Time, error) {
	return awaitInserts(ctx, at, func() (time.Time, error) {
		inserts, err := ReadInserts(ctx, conn)
		return inserts.Oldest, err
	})
}

// awaitInserts is AwaitInserts with a way to read when the oldest insert in flight began. It reads that the less often
// the longer it has waited: what everybody asks all the time makes the inserts slower.
func awaitInserts(ctx context.Context, at time.Time, read func() (time.Time, error)) (time.Time, error) {
	// What the readings say together: an insert in flight was so before as well, or began since. The busier the machine,
	// the earlier may a single one put it, by tens of milliseconds.
	var oldest time.Time
	for began := time.Now(); ; {
		inFlight, err := read()
		if err != nil {
			return at, err
		}
		if inFlight.After(oldest) {
			oldest = inFlight
		}
		if oldest.After(at) {
			return at, nil
		}
		waited := time.Since(began)
		if waited > insertPatience {
			return oldest.Add(-time.Millisecond), nil
		}
		if err := Pause(ctx, max(insertPoll, waited/10)); err != nil {
			return at, err
		}
	}
}

// statementPoll is the pause between two looks at statements of others.
const statementPoll = 50 * time.Millisecond

// AwaitStatements waits for the statements that run now and whose query_id begins with a prefix.
func AwaitStatements(ctx context.Context, conn driver.Conn, prefix string) error {
	var running []string
	err := conn.QueryRow(ctx, "SELECT groupArray(query_id) FROM system.processes WHERE startsWith(query_id, '"+prefix+
		"')").Scan(&running)
	if err != nil {
		return failure.Of("read which statements run", err)
	}
	if len(running) == 0 {
		return nil
	}
	return AwaitNone(ctx, conn, "SELECT count() FROM system.processes WHERE query_id IN {running:Array(String)}",
		clickhouse.Named("running", running))
}

// AwaitNone waits until a count is zero.
func AwaitNone(ctx context.Context, conn driver.Conn, count string, args ...any) error {
	for {
		var n uint64
		if err := conn.QueryRow(ctx, count, args...).Scan(&n); err != nil {
			return failure.Of("wait for what runs", err)
		}
		if n == 0 {
			return nil
		}
		if err := Pause(ctx, statementPoll); err != nil {
			return err
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

// A storedRow is a row of insert_counters, of which a count has a few, or of the rollup log.
type storedRow struct {
	Now          time.Time `ch:"now"`
	Uptime       uint32    `ch:"uptime"`
	Failed       uint64    `ch:"failed"`
	Source       string    `ch:"source"`
	Organization string    `ch:"organization_id"`
	Kind         string    `ch:"kind"` // empty for a count
	Number       uint64    `ch:"number"`
	Value        int64     `ch:"value"`
	At           time.Time `ch:"at"`
}

const (
	readNow    = "now64(3, 'UTC') AS now"
	readUptime = "uptime() AS uptime"
	// ClickHouse counts an insert that failed before it takes it off system.processes.
	failed  = "(SELECT sum(value) FROM system.events WHERE event = 'FailedInsertQuery') AS failed"
	unknown = "toUInt64(0) AS failed"
	// The list has at least this query itself. It is filtered in Go: every function in the text costs ClickHouse more
	// than the rows do.
	readInserts = "SELECT " + readNow + ", elapsed, query_kind, query_id, query FROM system.processes"
)

var (
	ofStore = sql.AllOrganizations("a snapshot is of several of them, and the log is the store's")

	logEntries = sql.Select{
		Columns: []string{readNow, readUptime, unknown, "source", "organization_id", "kind",
			"tupleElement(latest, 'value') AS value", "tupleElement(latest, 'number') AS number",
			"tupleElement(latest, 'recorded_at') AS at"},
		From: ofStore(schema.TableRollupLog),
	}
)

// stored are the rows of insert_counters of some organizations, with the number of inserts that failed, and, where it
// is wanted, those of the rollup log.
func stored(failed string, withLog bool) fmt.Stringer {
	counts := sql.Select{
		Columns: []string{readNow, readUptime, failed, "source", "organization_id", "rows AS number", "last_stored_at AS at"},
		From:    ofStore(schema.TableInsertCounters),
		Where:   []string{"organization_id IN {organizations:Array(String)}"},
	}
	if !withLog {
		return counts
	}
	counts.Columns = []string{readNow, readUptime, failed, "toString(source) AS source", "organization_id", "'' AS kind",
		"toInt64(0) AS value", "rows AS number", "last_stored_at AS at"}
	return sql.Union{counts, logEntries}
}

// readStored completes a snapshot with the counts of organizations, the number of inserts that failed and, if it is
// wanted, the rollup log. Rows are summed in Go: every function in the text costs ClickHouse more.
func (s *Snapshot) readStored(
	ctx context.Context, conn driver.Conn, withLog bool, organizations []schema.OrganizationID,
) (err error) {
	ctx, end := trace.Statement(ctx, "snapshot")
	defer func() { end(err) }()
	names := []string{""} // the store's own
	s.of = make(map[schema.OrganizationID]counts, len(organizations))
	for _, organization := range organizations {
		names, s.of[organization] = append(names, string(organization)), counts{}
	}
	parameter := clickhouse.Named("organizations", names)
	var rows []storedRow
	read := failed
	err = conn.Select(oneThread(ctx), &rows, stored(read, withLog).String(), parameter)
	if err != nil && failure.CodeOf(err) == failure.CodeAccessDenied {
		s.failed.unknown, read = true, unknown
		err = conn.Select(oneThread(ctx), &rows, stored(read, withLog).String(), parameter)
	}
	if err == nil && len(rows) == 0 { // a store in which nothing was ever counted
		err = conn.Select(oneThread(ctx), &rows, sql.Select{Columns: []string{readNow, readUptime, read}}.String())
	}
	if err != nil {
		return failure.Of("read what the store has", err)
	}
	s.collect(rows)
	return nil
}

// collect adds rows to a snapshot. All of them have the clock, and those of the log do not have the number of inserts
// that failed.
func (s *Snapshot) collect(rows []storedRow) {
	log := logRows{}
	for _, row := range rows {
		if s.Now.IsZero() {
			s.Now = row.Now.UTC()
		}
		s.started = row.Now.Add(-time.Duration(row.Uptime) * time.Second)
		s.failed.n = max(s.failed.n, row.Failed)
		switch {
		case row.Kind != "":
			log.add(row)
		case row.Source == schema.TableRollupLog:
			s.log.add(row.Number, row.At)
		case row.Source == schema.SourceAlterations && row.Organization == "":
			s.altering.add(row.Number, row.At)
		default:
			organization := schema.OrganizationID(row.Organization)
			c := s.of[organization]
			if count := c.of(row.Source); count != nil {
				count.add(row.Number, row.At)
				s.of[organization] = c
			}
		}
	}
	if len(rows) > 0 {
		s.Log = log.log(rows[0].Now)
	}
}

// oneThread is a context for a query of so few rows that a second thread costs more than it helps.
func oneThread(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
}
