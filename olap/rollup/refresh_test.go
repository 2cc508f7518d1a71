package rollup_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

// load stores runs 0 to n-1 of two organizations in four months, which are two quarters, in a status.
func load(t *testing.T, conn driver.Conn, n int, status string) {
	t.Helper()
	loadMonths(t, conn, n, status, 4)
}

// loadMonths is load in so many months. A quarter is half of what a comparison has to do in two.
func loadMonths(t *testing.T, conn driver.Conn, n int, status string, months int) {
	t.Helper()
	var records olaptest.Records
	at, ada := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com"
	for i := range n {
		for _, organization := range []string{"acme", "globex"} {
			created := at.AddDate(0, i%months, 0)
			var initiator *string // those of globex have none
			if organization == "acme" {
				initiator = &ada
			}
			run := olaptest.Run{
				Organization: organization, ID: olaptest.ID(i), AgentID: olaptest.ID(i % 3), CreatedAt: created, Kind: "agent",
				Status: status, Identifier: initiator, UpdatedAt: created.Add(time.Duration(len(status)) * time.Hour),
			}
			records.Runs, records.Attributions = append(records.Runs, run), append(records.Attributions, run.By(ada))
		}
	}
	olaptest.Load(t, conn, records)
}

func all(t *testing.T, conn driver.Conn) {
	t.Helper()
	if err := rollup.New(conn, quiet, 0).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
}

// refreshed is a store with runs 0 to n-1 of two organizations that are in the rollup.
func refreshed(t *testing.T, n int) driver.Conn {
	t.Helper()
	conn := olaptest.OpenStore(t).Conn()
	load(t, conn, n, "RUNNING")
	all(t, conn)
	return conn
}

func number(t *testing.T, conn driver.Conn, query string) (n int64) {
	t.Helper()
	if err := conn.QueryRow(ctx, query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func check(t *testing.T, conn driver.Conn) []rollup.Difference {
	t.Helper()
	found, err := rollup.Check(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sound checks that the rollup is what its sources say.
func sound(t *testing.T, conn driver.Conn) {
	t.Helper()
	if found := check(t, conn); len(found) > 0 {
		t.Errorf("the rollup differs from its sources: %+v", found)
	}
}

func state(t *testing.T, conn driver.Conn) snapshot.Log {
	t.Helper()
	s, err := snapshot.ReadLog(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A changed record counts once, as it is now; repeats change nothing.
func TestRefreshesChanges(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for _, status := range []string{"PAUSED", "RUNNING", "PENDING", "COMPLETED", "PAUSED"} {
		load(t, conn, 40, status)
		all(t, conn)
	}
	for query, want := range map[string]int64{
		"SELECT toInt64(sum(runs)) FROM rollup_runs":               80,
		"SELECT toInt64(sum(completed)) FROM rollup_runs":          80,
		"SELECT toInt64(sum(active)) FROM rollup_runs":             0,
		"SELECT toInt64(sum(interacted)) FROM rollup_attributions": 80,
		"SELECT toInt64(count()) FROM rollup_attributions":         80,
	} {
		if n := number(t, conn, query); n != want {
			t.Errorf("%d, want %d: %s", n, want, query)
		}
	}
	sound(t, conn)
}

// Rows younger than the margin wait; so do a few rows, for more.
func TestWaits(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	load(t, conn, 10, "RUNNING")
	if err := rollup.New(conn, quiet, time.Hour).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "SELECT toInt64(count()) FROM rollup_runs"); n != 0 {
		t.Errorf("%d rows were refreshed before the margin", n)
	}
	all(t, conn)
	load(t, conn, 10, "COMPLETED")
	if _, err := rollup.New(conn, quiet, 0).Step(ctx); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "SELECT toInt64(sum(completed)) FROM rollup_runs"); n != 0 {
		t.Errorf("%d rows were refreshed at once although they are few", n)
	}
}

// A refresher that may not write says what it failed to do. A step that finds nothing to do says nothing of it.
func TestARefresherThatMayNotWrite(t *testing.T) {
	conn := &dyingConn{Conn: olaptest.OpenStore(t).Conn(), left: 1000}
	if err := rollup.New(conn, quiet, time.Hour).Refresh(ctx); err != nil { // so that the watermark is to be renewed
		t.Fatal(err)
	}
	refresher, idle := rollup.New(conn, quiet, 0), false
	conn.left = 0
	if _, err := refresher.Step(ctx); !errors.Is(err, errDied) || refresher.Did() != "refresh" {
		t.Errorf("a step that failed to write did %q: %v", refresher.Did(), err)
	}
	for range 20 { // where one takes seconds, rows are looked for in the next one again
		conn.left = 0
		if _, err := refresher.Step(ctx); err == nil {
			idle = true
			break
		}
	}
	if did := refresher.Did(); !idle || did != "" {
		t.Errorf("a step that had nothing to do did %q", did)
	}
	conn.left = 1000
	refresher = rollup.New(conn, quiet, 0)
	if _, err := refresher.Step(ctx); err != nil || refresher.Did() != "refresh" {
		t.Errorf("a step that wrote did %q: %v", refresher.Did(), err)
	}
}

// While nothing is stored, a step reads the log alone, and notices a clock that was set back all the same.
func TestAQuietStoreIsLeftAlone(t *testing.T) {
	conn := olaptest.Hold(refreshed(t, 10))
	refresher := rollup.New(conn, quiet, 0)
	var more bool
	step := func() (sent int) {
		t.Helper()
		conn.Restart()
		var err error
		if more, err = refresher.Step(ctx); err != nil {
			t.Fatal(err)
		}
		return conn.Sent()
	}
	if sent := step(); sent < 2 {
		t.Errorf("the first step looked for nothing in %d statements", sent)
	}
	sent := 0
	for range 20 { // where one takes seconds, rows are looked for in the next one again
		if sent = step(); sent == 1 {
			break
		}
	}
	if sent != 1 {
		t.Errorf("a quiet store was sent %d statements a step, want 1", sent)
	}
	conn.Shift(time.Minute)
	if sent := step(); sent < 2 {
		t.Error("a minute later nothing was looked for")
	}
	conn.Shift(-time.Minute)
	if step(); !more {
		t.Error("a clock that was set back was not noticed")
	}
}

// A refresher that is late, or repeats a batch that was written in part, counts nothing twice.
func TestRepeatedBatchesAddNothing(t *testing.T) {
	conn := refreshed(t, 40)
	// As if nothing of it was known, and one quarter of the year was lost.
	execute(t, conn, "TRUNCATE TABLE rollup_log", "ALTER TABLE rollup_runs DROP PARTITION 20262")
	load(t, conn, 50, "COMPLETED")
	for range 2 {
		all(t, conn)
	}
	if n := number(t, conn, "SELECT toInt64(sum(runs)) FROM rollup_runs"); n != 100 {
		t.Errorf("%d runs are refreshed, want 100", n)
	}
	sound(t, conn)
}

// Check names each thing that is wrong, in records and in names, and nothing else, and rebuilding puts all of it right
// and ends its damage.
func TestCheckAndRebuild(t *testing.T) {
	conn := refreshed(t, 40)
	const columns = "organization_id, created_at, run_id, state, agent_id, initiator_key, first_stored_at, sign"
	execute(t, conn,
		"INSERT INTO rollup_runs ("+columns+") SELECT "+strings.Replace(columns, "state", "state + 64", 1)+
			" FROM rollup_runs WHERE organization_id = 'acme' AND toMonth(created_at) = 4 LIMIT 1",
		"ALTER TABLE rollup_runs UPDATE first_stored_at = now64(3)"+
			" WHERE organization_id = 'acme' AND toMonth(created_at) = 3 SETTINGS mutations_sync = 2",
		"ALTER TABLE rollup_attributions DELETE"+
			" WHERE organization_id = 'acme' AND toMonth(occurred_at) = 3 SETTINGS mutations_sync = 2",
		"TRUNCATE TABLE initiator_keys", // those of every quarter
	)
	found := map[string]int{}
	for _, d := range check(t, conn) {
		found[d.Organization+" "+d.Table+d.Projection+" "+d.Span]++
	}
	want := map[string]int{
		"acme rollup_runs 2026-Q1": 1, "acme rollup_runs 2026-Q2": 1, "acme rollup_attributions 2026-Q1": 1,
		"acme initiator_keys 2026-Q1": 1, "acme initiator_keys 2026-Q2": 1,
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	steps(t, rollup.NewChecker(conn, olaptest.Anyone, quiet), func() bool { return len(state(t, conn).Damaged) > 0 })
	if err := rollup.Rebuild(ctx, conn); err != nil {
		t.Fatal(err)
	}
	s := state(t, conn)
	if s.Refreshing || !s.StoreWatermark().IsZero() || len(s.Damaged) > 0 || s.LastDamage == 0 {
		t.Errorf("after emptying the tables queries may use them, or some is damaged: %+v", s)
	}
	all(t, conn)
	sound(t, conn)
}

// A watermark is inclusive: what was stored in its millisecond is in the rollup, and isn't refreshed again after it.
func TestRowsOfTheWatermarkAreRefreshed(t *testing.T) {
	conn := refreshed(t, 1)
	until := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	err := conn.Exec(ctx, `INSERT INTO attributions (organization_id, attribution_id, occurred_at, first_stored_at)
		SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-02 12:00:00', 3, 'UTC'),
			toDateTime64('2026-02-01 00:00:00', 3, 'UTC') + toIntervalMillisecond(number) FROM numbers(2)`)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if n > 0 {
			at := until.Add(time.Duration(n-1) * time.Millisecond)
			if err := batch.Insert(ctx, at.Add(-time.Millisecond), at); err != nil {
				t.Fatal(err)
			}
		}
		if got := number(t, conn, "SELECT toInt64(sum(records)) FROM rollup_attributions"); got != int64(2+n) {
			t.Errorf("%d records are in the rollup, want %d", got, 2+n)
		}
	}
}

// A check says how far it is, at last how many records there are: runs and attributions of two organizations.
func TestACheckSaysHowFarItIs(t *testing.T) {
	conn := refreshed(t, 40)
	var said []uint64
	found, err := rollup.CheckWith(ctx, conn, func(records uint64) { said = append(said, records) })
	if err != nil || len(found) > 0 || len(said) == 0 || !slices.IsSorted(said) || said[len(said)-1] != 160 {
		t.Errorf("%v, %v, said %v, want 160 in the end", found, err, said)
	}
}
