package olap_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

// Rows that were stored before the store's clock was set back are in every answer: large organizations, first pages and
// later ones have them too. So are those that a backup brought from a store whose clock was ahead.
func TestRowsOfBeforeTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"stored": false, "restored": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rowsOfBeforeTheClockWasSetBack(t, restored)
		})
	}
}

func rowsOfBeforeTheClockWasSetBack(t *testing.T, restored bool) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	small, large := engineWith(conn, plan.Options{}), engineWith(conn, asLarge)
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
		execute(t, conn, sql, ahead)
	}
	if restored { // records come without what is derived of them
		execute(t, conn, "TRUNCATE TABLE insert_counters")
		if err := rollup.Count(ctx, conn); err != nil {
			t.Fatal(err)
		}
	}
	for name, engine := range map[string]*olap.Engine{"small": small, "large": large} {
		for range 3 {
			if got := ask(t, engine, "acme", totals).Rows[0][0]; got != 36.0 {
				t.Errorf("%s: %v runs, want 36", name, got)
			}
			days := byDay(7)
			if runs := summed(all(t, engine, "acme", days)); runs != 36 {
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
	t.Parallel()
	store := olaptest.OpenStore(t).Conn()
	conn := olaptest.Hold(store)
	runs := 0.0
	stored := func(back time.Duration) {
		t.Helper()
		runs++
		execute(t, store, `INSERT INTO runs (organization_id, run_id, created_at, agent_id, kind, status, updated_at,
				first_stored_at)
			SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-02 12:00:00', 3, 'UTC'), generateUUIDv4(), 'agent', 'FAILED',
				now64(3), now64(3, 'UTC') - toIntervalMillisecond(?)`, back.Milliseconds())
	}
	engine := func() *olap.Engine {
		e := engineWith(conn, asLarge)
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

// A version of a run, or a repeat of a record, that is stored after the clock was set back seems to be stored before
// the record was. Pages of a continuation in between have the record once, from the rollup as from base rows, and the
// rollup is what its sources are.
func TestRecordsStoredAgainAfterTheClockWasSetBack(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	stamps, held := olaptest.StampsOf(t, conn), olaptest.Hold(conn)
	held.Shift(time.Hour)
	stamps.Shift(t, time.Hour)
	run := runOn(1, 5, "RUNNING")
	attribution := run.By("ada@example.com")
	older := olaptest.Records{Runs: []olaptest.Run{runOn(2, 1, "FAILED"), runOn(3, 2, "FAILED"), runOn(4, 3, "FAILED")}}
	engines := strategies(held)
	days := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count", "active_run_count"},
		Dimensions: []string{"day"}, Range: january, Limit: 1}
	olaptest.Load(t, conn, older)
	olaptest.Load(t, conn, olaptest.Records{Attributions: []olaptest.Attribution{attribution}})
	later(t, conn, storeClock(t, conn))
	next := map[string]olaptest.Query{}
	for name, engine := range engines { // of continuations that began before the record was stored
		first := ask(t, engine, "acme", days)
		next[name] = days
		q := next[name]
		q.Cursor = *first.Cursor
		next[name] = q
	}
	later(t, conn, storeClock(t, conn))
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run}})
	held.Shift(time.Hour + time.Minute)
	refresher := rollup.New(held, quiet, rollup.Margin)
	refreshed(t, refresher)
	stamps.Shift(t, 0)
	held.Shift(0)
	refreshed(t, refresher) // which moves the watermark back
	run.Status, run.UpdatedAt = "COMPLETED", run.UpdatedAt.Add(time.Hour)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run},
		Attributions: []olaptest.Attribution{attribution}})
	want := [][]any{{"2026-01-02", 1.0, 0.0, 0.0}, {"2026-01-03", 1.0, 0.0, 0.0}, {"2026-01-05", 1.0, 1.0, 0.0}}
	for _, when := range []string{"before", "refreshed"} {
		for name, engine := range engines {
			if got := all(t, engine, "acme", next[name]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: %v, want %v", when, name, got, want)
			}
		}
		held.Shift(2 * time.Hour)
		refreshed(t, refresher)
	}
	sound(t, held)
}

// Of copies of an attribution record that contradict each other the one with the earliest stamp counts (contract 4.20),
// also where it was stored last, when the store's clock had been set back, and the rollup has another one.
func TestContradictionsStoredAfterTheClockWasSetBack(t *testing.T) {
	copyOf := func(agent int, after time.Duration) olaptest.Records {
		record := runOn(1, 5, "").By("ada@example.com")
		record.AgentID, record.OccurredAt = olaptest.ShortID(agent), record.OccurredAt.Add(after)
		return olaptest.Records{Attributions: []olaptest.Attribution{record}}
	}
	byAgent := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"},
		Dimensions: []string{"agent_id"}, Range: january, Limit: 5}
	sample := olaptest.NewSample(3)
	for name, c := range map[string]struct {
		before []olaptest.Records
		last   olaptest.Records // which has the earliest stamp
		clocks bool             // are several
	}{
		"another content": {[]olaptest.Records{copyOf(1, 0)}, copyOf(2, 0), false},
		"another clock":   {[]olaptest.Records{copyOf(1, 0)}, copyOf(2, time.Hour), true},
		"a clock that was superseded": {[]olaptest.Records{copyOf(1, 0), copyOf(2, time.Hour)},
			copyOf(2, time.Hour), true},
	} {
		if !sample.Try() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := olaptest.OpenStore(t).Conn()
			stamps, held := olaptest.StampsOf(t, conn), olaptest.Hold(conn)
			engines := strategies(held)
			refresher := rollup.New(held, quiet, rollup.Margin)
			held.Shift(time.Hour)
			stamps.Shift(t, time.Hour)
			for _, records := range c.before {
				later(t, conn, storeClock(t, conn))
				olaptest.Load(t, conn, records)
			}
			held.Shift(time.Hour + time.Minute)
			refreshed(t, refresher)
			stamps.Shift(t, 0)
			held.Shift(0)
			refreshed(t, refresher) // which moves the watermark back
			olaptest.Load(t, conn, c.last)
			checker := rollup.NewChecker(held, olaptest.Anyone, quiet)
			for _, when := range []string{"before the refresh", "after it", "after a repair"} {
				for name, engine := range engines {
					if c.clocks && when == "before the refresh" {
						continue // conflicts of clocks are found by it
					}
					rows := all(t, engine, "acme", byAgent)
					if len(rows) != 1 || rows[0][0] != olaptest.ShortID(2).String() || rows[0][len(rows[0])-1] != 1.0 {
						t.Errorf("%s, %s: %v, want 1 of agent 2", name, when, rows)
					}
				}
				held.Shift(2 * time.Hour)
				refreshed(t, refresher)
				for n := 0; n < 20 && when == "after it"; n++ {
					if _, err := checker.Step(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			sound(t, held)
		})
	}
}
