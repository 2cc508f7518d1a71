package olap_test

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// While several writers copy new rows and new versions of old ones, every continuation is one
// consistent answer: it has what was acknowledged before it began, and following it later gives the
// same rows again.
func TestContinuationsUnderConcurrentWriters(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	const writers, batches, rows = 3, 25, 20
	var acknowledged atomic.Int64
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for b := range batches {
				var records olaptest.Records
				for i := range rows {
					n := (w*batches+b)*rows + i
					run := runOn(1_000_000+n, 1+n%28, "RUNNING")
					records.Runs = append(records.Runs, run)
					if n > rows { // and a new version of an older one
						old := runOn(1_000_000+n-rows, 1+(n-rows)%28, "COMPLETED")
						if n-rows >= w*batches*rows {
							old.UpdatedAt = old.UpdatedAt.Add(time.Hour)
							records.Runs = append(records.Runs, old)
						}
					}
				}
				olaptest.Load(t, store.Conn(), records)
				acknowledged.Add(rows)
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()

	type continuation struct {
		query olaptest.Query
		rows  [][]any
	}
	var seen []continuation
	q := byDay(5)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		before := acknowledged.Load()
		then, err := snapshot.Now(context.Background(), store.Conn())
		if err != nil {
			t.Fatal(err)
		}
		first := ask(t, engine, "acme", q)
		if first.Cursor == nil {
			continue // fewer than six days yet
		}
		next := q
		next.Cursor = *first.Cursor
		rest := all(t, engine, "acme", next)
		seen = append(seen, continuation{next, rest})
		total := summed(first.Rows) + summed(rest)
		asOf, err := time.Parse(time.RFC3339, first.AsOf)
		if err != nil {
			t.Fatal(err)
		}
		// On a slow machine an insert can outlast the engine's patience, and the boundary lies before it.
		if total < float64(before) && !asOf.Before(then) {
			t.Errorf("%v runs in the pages, %d were acknowledged before", total, before)
		}
	}
	for i, c := range seen {
		if again := all(t, engine, "acme", c.query); !reflect.DeepEqual(again, c.rows) {
			t.Errorf("continuation %d of %d answers otherwise later:\n%v\n%v", i, len(seen), c.rows, again)
		}
	}
	if len(seen) == 0 {
		t.Error("no continuation was followed")
	}
}

// A warnings counts warnings.
type warnings struct {
	slog.Handler
	count atomic.Int64
}

func (*warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.count.Add(1)
	}
	return nil
}

// While several writers copy new runs and new versions, several refreshers refresh, parts are merged and the rollup is
// checked, every sum has at least what was acknowledged before it was asked for and at most what was begun before it
// was answered, in states that runs really had.
func TestSumsUnderConcurrentWritersAndRefreshers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engine := newEngine(conn)
	engine.Use(asLarge)
	const writers, refreshers, batches, rows = 3, 3, 25, 20
	var begun, acknowledged, completing, completed atomic.Int64
	var writing, refreshing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for b := range batches {
				var records, changes olaptest.Records
				for i := range rows {
					n := (w*batches+b)*rows + i
					run := runOn(2_000_000+n, 1+n%28, "RUNNING")
					records.Runs = append(records.Runs, run)
					run.Status, run.UpdatedAt = "COMPLETED", run.UpdatedAt.Add(time.Hour)
					changes.Runs = append(changes.Runs, run)
				}
				begun.Add(rows)
				olaptest.Load(t, conn, records)
				acknowledged.Add(rows)
				completing.Add(rows)
				olaptest.Load(t, conn, changes)
				completed.Add(rows)
			}
		})
	}
	stop := make(chan struct{})
	untilStop := func(step func() error) {
		refreshing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range refreshers {
		refresher := rollup.New(conn, quiet, 0)
		untilStop(func() error { return refresher.Refresh(ctx) })
	}
	alarms := &warnings{Handler: slog.DiscardHandler}
	for range 2 {
		checker := rollup.NewChecker(conn, olaptest.Anyone, slog.New(alarms))
		untilStop(func() error {
			_, err := checker.Step(ctx)
			return err
		})
	}
	untilStop(func() error { return conn.Exec(ctx, "OPTIMIZE TABLE rollup_runs FINAL") })
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	q := olaptest.Query{
		Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count", "active_run_count"}, Range: january,
		Limit: 1,
	}
	asked := 0
	for running := true; running; asked++ {
		select {
		case <-done:
			running = false
		default:
		}
		atLeast, completedAtLeast := acknowledged.Load(), completed.Load()
		row := ask(t, engine, "acme", q).Rows[0]
		runs, complete, active := int64(row[0].(float64)), int64(row[1].(float64)), int64(row[2].(float64))
		if runs < atLeast || runs > begun.Load() || complete < completedAtLeast || complete > completing.Load() ||
			runs != complete+active {
			t.Fatalf("%d runs, %d completed, %d active; %d runs were acknowledged and %d completed before",
				runs, complete, active, atLeast, completedAtLeast)
		}
	}
	close(stop)
	refreshing.Wait()
	t.Logf("%d answers", asked)
	if n := alarms.count.Load(); n > 0 {
		t.Errorf("%d false alarms of damage", n)
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	sound(t, conn)
	var runs int64
	err := conn.QueryRow(ctx, "SELECT toInt64(sum(completed)) FROM rollup_runs").Scan(&runs)
	if err != nil || runs != writers*batches*rows {
		t.Errorf("%d completed runs are refreshed, want all %d (%v)", runs, writers*batches*rows, err)
	}
}
