package olap_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

var january = olaptest.Range{Start: "2026-01-01", End: "2026-01-31", Timezone: "UTC"}

// totals asks for the runs of January.
var totals = olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 100}

// byDay asks for them by the day, so many on a page.
func byDay(limit int) olaptest.Query {
	q := by(totals, "day")
	q.Limit = limit
	return q
}

// summed is the sum of the last values of rows.
func summed(rows [][]any) (sum float64) {
	for _, row := range rows {
		sum += row[len(row)-1].(float64)
	}
	return sum
}

// storedUntil is how many runs were first stored until an instant, as answers have it.
func storedUntil(t *testing.T, conn driver.Conn, asOf string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM runs FINAL WHERE first_stored_at <= "+
		"parseDateTime64BestEffort($1, 3, 'UTC')", asOf).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func runOn(n, day int, status string) olaptest.Run {
	at := time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC)
	return olaptest.Run{
		Organization: "acme", ID: olaptest.ShortID(n), AgentID: olaptest.ShortID(1), CreatedAt: at, UpdatedAt: at,
		Kind: "agent", Status: status,
	}
}

// newEngine returns an engine to which organizations are idle at once.
func newEngine(conn driver.Conn) *olap.Engine {
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.Margin(0)
	return engine
}

// runsIn is the sum of run_count in a first page and further rows.
func runsIn(first response, further [][]any) (total float64) {
	for i, column := range first.Columns {
		if column.Name == "run_count" {
			for _, row := range slices.Concat(first.Rows, further) {
				total += row[i].(float64)
			}
		}
	}
	return total
}

// pass waits until the store's clock has moved on.
func pass(t *testing.T, conn driver.Conn, by time.Duration) {
	t.Helper()
	began, err := snapshot.Now(t.Context(), conn)
	for now := began; err == nil && now.Sub(began) < by; {
		now, err = snapshot.Now(t.Context(), conn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A row whose insert has begun and outlasts the engine's patience (2 s) is in none of the pages: it
// may not appear between two of them.
func TestRowsInFlightAreAfterTheBoundary(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	// One was asked before, one followed the store before the insert, one does while it is in flight.
	engine, before, during := newEngine(conn), newEngine(conn), newEngine(conn)
	const usual = 50 // one page is expected to have so many agents
	var records olaptest.Records
	for n := range usual + 2 {
		run := runOn(n, 1+n%2*2, "RUNNING")
		run.AgentID = olaptest.ShortID(n)
		records.Runs = append(records.Runs, run)
	}
	olaptest.Load(t, conn, records)
	q := byDay(1)
	ask(t, engine, "acme", q)
	before.FollowOnce(ctx)
	pass(t, conn, time.Second/2) // a busy store tells the begin of an insert a little too early

	inserted := olaptest.SlowInsert(ctx, t, conn, "runs", "2026-01-02", 10)
	during.FollowOnce(ctx)
	byAgent := q
	byAgent.Dimensions, byAgent.Limit = []string{"agent_id"}, usual
	var asked sync.WaitGroup
	var queries []olaptest.Query
	firsts := make([]response, 3*4)
	for n := range firsts {
		engine, next := engine, q
		if n >= 4 {
			engine, next = []*olap.Engine{before, during}[n/4-1], byAgent
		}
		next.Metrics = []string{"run_count", "completed_run_count", "failed_run_count", "cancelled_run_count"}[:1+n%4]
		queries = append(queries, next)
		asked.Go(func() {
			time.Sleep(time.Duration(n%4) * 15 * time.Millisecond) // one reads the inserts in flight, others come soon after
			firsts[n] = ask(t, engine, "acme", next)
		})
	}
	asked.Wait()
	if err := <-inserted; err != nil {
		t.Fatal(err)
	}
	for n, first := range firsts {
		next := queries[n]
		next.Cursor = *first.Cursor
		second := ask(t, engine, "acme", next)
		total := runsIn(first, second.Rows)
		// On a slow machine one may be asked when the insert has ended.
		want := storedUntil(t, conn, first.AsOf)
		if total != float64(want) || n < 4 && want == usual+2 && second.Rows[0][0] != "2026-01-03" {
			t.Errorf("query %d: %v runs, second page %v, want the %d runs of its boundary", n, total, second.Rows, want)
		}
	}
	q.Limit = 100
	if fresh := ask(t, engine, "acme", q); len(fresh.Rows) != 3 {
		t.Errorf("a fresh query answers %v, want three days", fresh.Rows)
	}
}

// A boundary that a statement sets itself is read when its rows have been read.
func TestTheOwnClockIsReadAfterTheRows(t *testing.T) {
	t.Parallel()
	var later bool
	err := olaptest.OpenStore(t).Conn().QueryRow(context.Background(), "SELECT toUnixTimestamp64Milli(nowInBlock64(3)) >="+
		" toUnixTimestamp64Milli(began) + 1000 FROM (SELECT max(now64(3)) AS began, count() AS rows FROM numbers(2)"+
		" WHERE sleepEachRow(0.6) = 0) AS g ORDER BY rows LIMIT 1").Scan(&later)
	if err != nil || !later {
		t.Fatalf("the clock was read before the rows: %v", err)
	}
}

// It is not before any row of the answer, also where a row was stamped by a clock that is ahead.
func TestTheOwnClockIsNotBeforeTheRows(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	ahead := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	execute(t, store.Conn(), `INSERT INTO runs
			(organization_id, run_id, created_at, agent_id, kind, status, updated_at, first_stored_at)
		SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-02 12:00:00', 3, 'UTC'), generateUUIDv4(), 'agent', 'FAILED',
			now64(3), fromUnixTimestamp64Milli(toInt64(?) - number * 1000, 'UTC') FROM numbers(3)`, ahead.UnixMilli())
	for _, q := range []olaptest.Query{totals, by(totals, "day"), by(totals, "user_type")} {
		got := ask(t, engine, "acme", q)
		asOf, err := time.Parse(time.RFC3339, got.AsOf)
		if err != nil || asOf.Before(ahead) || len(got.Rows) != 1 || got.Rows[0][len(got.Rows[0])-1] != 3.0 {
			t.Errorf("%v as of %s, want 3 as of %s or later: %v", got.Rows, got.AsOf, ahead, err)
		}
	}
}

// A query whose answer fitted on a page until now gets more rows than that: its continuation is as consistent as any.
func TestAnAnswerThatOutgrowsItsPage(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	q := byDay(2)
	var want [][]any
	for day := 1; day <= 5; day++ {
		for range 3 { // what was learnt from the last answer must not matter
			if got := all(t, engine, "acme", q); len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("%d days: got %v, want %v", day-1, got, want)
			}
		}
		olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{runOn(day, day, "FAILED")}})
		want = append(want, []any{fmt.Sprintf("2026-01-%02d", day), 1.0})
	}
	// An answer without rows reports a boundary too.
	q.Range = olaptest.Range{Start: "2025-01-01", End: "2025-01-31", Timezone: "UTC"}
	for range 2 {
		before, err := snapshot.Now(context.Background(), store.Conn())
		if err != nil {
			t.Fatal(err)
		}
		empty := ask(t, engine, "acme", q)
		asOf, err := time.Parse(time.RFC3339, empty.AsOf)
		if err != nil || len(empty.Rows) != 0 || asOf.Before(before) {
			t.Errorf("%v as of %s, sent at %s: %v", empty.Rows, asOf, before, err)
		}
	}
}
