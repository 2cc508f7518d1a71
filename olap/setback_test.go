package olap_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Rows that were stored before the store's clock was set back are in every answer: large organizations, first pages and
// later ones have them too.
func TestRowsOfBeforeTheClockWasSetBack(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	small, large := olap.NewEngine(conn, []byte("secret")), olap.NewEngine(conn, []byte("secret"))
	large.Use(asLarge)
	refresher := rollup.New(conn, quiet, 0)
	for day := range 5 {
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(day, 1+day, "FAILED")}})
	}
	refreshed(t, refresher)
	// The clock was an hour ahead, and was set back.
	ahead := time.Now().Add(time.Hour).UnixMilli()
	for _, sql := range []string{`INSERT INTO runs
			(organization_id, run_id, created_at, agent_id, kind, status, updated_at, first_stored_at)
		SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-01 12:00:00', 3, 'UTC') + toIntervalDay(number),
			generateUUIDv4(), 'agent', 'FAILED', now64(3), fromUnixTimestamp64Milli(toInt64(?), 'UTC') FROM numbers(31)`,
		"INSERT INTO insert_counters SELECT 'runs', 'acme', 0, fromUnixTimestamp64Milli(toInt64(?), 'UTC')"} {
		if err := conn.Exec(ctx, sql, ahead); err != nil {
			t.Fatal(err)
		}
	}
	for name, engine := range map[string]*olap.Engine{"small": small, "large": large} {
		for range 3 {
			totals := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
			if got := ask(t, engine, "acme", totals).Rows[0][0]; got != 36.0 {
				t.Errorf("%s: %v runs, want 36", name, got)
			}
			days := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"},
				Range: january, Limit: 7}
			runs := 0.0
			for _, row := range all(t, engine, "acme", days) {
				runs += row[1].(float64)
			}
			if runs != 36 {
				t.Errorf("%s: %v runs on all pages, want 36", name, runs)
			}
			engine.FollowOnce(ctx) // from then on boundaries need not be waited for
		}
	}
}

// Rows that are stored after the store's clock was set back seem older than what was refreshed. They are in every
// answer all the same, of a server that saw it and of one that starts later, and the rollup is used again when a
// refresher has moved its watermark back.
func TestRowsOfAfterTheClockWasSetBack(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t).Conn()
	conn := olaptest.Hold(store)
	totals := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	runs := 0.0
	stored := func(back time.Duration) {
		t.Helper()
		runs++
		if err := store.Exec(ctx, `INSERT INTO runs (organization_id, run_id, created_at, agent_id, kind, status, updated_at,
				first_stored_at)
			SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-02 12:00:00', 3, 'UTC'), generateUUIDv4(), 'agent', 'FAILED',
				now64(3), now64(3, 'UTC') - toIntervalMillisecond(?)`, back.Milliseconds()); err != nil {
			t.Fatal(err)
		}
	}
	engine := func() *olap.Engine {
		e := olap.NewEngine(conn, []byte("secret"))
		e.Use(asLarge)
		e.CacheAnswers(1 << 20)
		return e
	}
	refresher := rollup.New(conn, quiet, rollup.Margin)
	stored(time.Minute)
	refreshed(t, refresher)
	old := engine()
	asked := func(when string, engines ...*olap.Engine) {
		t.Helper()
		for _, e := range engines {
			for range 3 {
				if got := ask(t, e, "acme", totals).Rows[0][0]; got != runs {
					t.Errorf("%s: %v runs, want %v", when, got, runs)
				}
			}
		}
	}
	asked("before", old)
	stored(0)
	asked("a row", old)
	const back = time.Hour
	conn.Shift(-back)
	stored(back)
	asked("set back", old, engine())
	conn.Shift(0)
	asked("when the clock has passed the last commit again", old)
	conn.Shift(-back)
	stored(back)
	refreshed(t, refresher)
	stored(back)
	asked("refreshed", old, engine())
	conn.Shift(time.Second - back)
	asked("a second later", old, engine())
	conn.Shift(time.Hour)
	asked("set forward", old, engine())
}
