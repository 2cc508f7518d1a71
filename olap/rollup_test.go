package olap_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

var quiet = slog.New(slog.DiscardHandler)

func refreshed(t olaptest.Failer, s *rollup.Refresher) {
	t.Helper()
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Whenever records are refreshed, in whatever states and however often, and whatever was copied since, adding them
// up answers what the spec's plainest reading answers.
func TestRollupEqualsTheNaiveEvaluator(t *testing.T) {
	fewerChecks(t, 2)
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	caching, inline := olap.NewEngine(conn, []byte("secret")), olap.NewEngine(conn, []byte("secret"))
	caching.TakeAsLarge()
	inline.TakeAsLarge()
	inline.CacheNoDelta()
	caching.TrustClock()
	refresher := rollup.New(conn, quiet, 0)
	organizations := 0
	rapid.Check(t, func(t *rapid.T) {
		organizations++
		organization := fmt.Sprintf("org-%d", organizations)
		records := olaptest.DrawRecords(t, organization)
		if !olaptest.UniqueLiveSlugs(records, organization) {
			t.Skip("two agents that are not deleted have one slug")
		}
		for _, batch := range records.Batches(t) {
			olaptest.Load(t, conn, batch)
			switch n := rapid.IntRange(0, 29).Draw(t, "maintenance"); {
			case n < 12:
				refreshed(t, refresher)
			case n == 12:
				for _, table := range []string{"runs", "attributions", "rollup_runs", "rollup_attributions"} {
					if err := conn.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
						t.Fatal(err)
					}
				}
			case n < 19: // a delta is cached, which later records complete
				ask(t, caching, organization, olaptest.DrawSum(t))
			case n == 19:
				if err := rollup.Rebuild(ctx, conn, rollup.Abandoned); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 3 {
			engine := rapid.SampledFrom([]*olap.Engine{caching, inline}).Draw(t, "engine")
			compare(t, engine, records, organization, olaptest.DrawSum(t))
		}
	})
	if differences, err := rollup.Check(ctx, conn); err != nil || len(differences) > 0 {
		t.Errorf("records in the rollup differ from their sources: %+v, %v", differences, err)
	}
}

// A cached delta, also an empty one, is valid until something is stored or refreshed.
func TestEveryAnswerHasWhatWasAcknowledgedBefore(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.TakeAsLarge()
	engine.TrustClock()
	refresher := rollup.New(conn, quiet, 0)
	q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	for n := range 12 {
		for read := range 4 {
			if n%3 == 0 && read == 2 {
				refreshed(t, refresher)
			}
			if got := ask(t, engine, "acme", q).Rows[0][0].(float64); got != float64(n) {
				t.Fatalf("%v runs, want %d", got, n)
			}
		}
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1, "RUNNING")}})
	}
}

// A countingConn counts the statements that read the delta.
type countingConn struct {
	driver.Conn
	reads   atomic.Int64
	further atomic.Int64 // of those, the ones that complete a cached delta
}

func (c *countingConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if strings.Contains(sql, "was_in_rollup") {
		c.reads.Add(1)
		if strings.Contains(sql, "NOT IN") {
			c.further.Add(1)
		}
	}
	return c.Conn.Query(ctx, sql, args...)
}

// The delta is read once, whatever the queries, until something is stored of the same organization in the same source.
// Then only what was stored since is read, until something is refreshed.
func TestDeltaIsReadOnce(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	conn := &countingConn{Conn: store}
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.TakeAsLarge()
	engine.TrustClock()
	refresher := rollup.New(store, quiet, 0)
	refreshed(t, refresher)
	totals := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	people := olaptest.Query{Model: "agent_runs", Metrics: []string{"unique_initiator_count"},
		Dimensions: []string{"user_identifier", "day"}, Range: january, Limit: 10}
	// It may take some time until no insert is left that might have begun before stored rows were counted.
	for conn.reads.Load() == 0 || store.Exec(t.Context(), "SELECT 1") != nil {
		ask(t, engine, "acme", totals)
	}
	ask(t, engine, "acme", totals)
	for n, further := range []int64{0, 1, 1, 0, 1} { // before the first one there are no changes
		if n == 3 {
			refreshed(t, refresher)
		}
		reads, furtherReads := conn.reads.Load(), conn.further.Load()
		olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1, "RUNNING")}})
		for range 3 {
			if got := ask(t, engine, "acme", totals).Rows[0][0].(float64); got != float64(n+1) {
				t.Fatalf("%v runs, want %d", got, n+1)
			}
			ask(t, engine, "acme", people)
			other := runOn(n, 1, "RUNNING")
			other.Organization = "globex"
			olaptest.Load(t, store,
				olaptest.Records{Runs: []olaptest.Run{other},
					Attributions: []olaptest.Attribution{{Organization: "acme", ID: other.ID, RunID: other.ID,
						AgentID: other.AgentID, Identifier: "ada@example.com", Activity: "interacted", InitiationType: "human",
						Source: "web", OccurredAt: other.CreatedAt}}})
		}
		if got := conn.reads.Load() - reads; got != 1 {
			t.Errorf("%d statements read the delta, want 1", got)
		}
		if got := conn.further.Load() - furtherReads; got != further {
			t.Errorf("%d statements completed the cached delta, want %d", got, further)
		}
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
// checked, every sum has at least what was acknowledged before the query began and at most what was begun before it was
// answered, in states that runs really had.
func TestSumsUnderConcurrentWritersAndRefreshers(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.TakeAsLarge()
	engine.TrustClock()
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
	for range refreshers {
		refresher := rollup.New(conn, quiet, 0)
		refreshing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					refreshed(t, refresher)
				}
			}
		})
	}
	alarms := &warnings{Handler: slog.DiscardHandler}
	for range 2 {
		checker := rollup.NewChecker(conn, slog.New(alarms))
		refreshing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := checker.Step(ctx); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	refreshing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := conn.Exec(ctx, "OPTIMIZE TABLE rollup_runs FINAL"); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count", "active_run_count"},
		Range: january, Limit: 1}
	queries := 0
	for running := true; running; queries++ {
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
			t.Fatalf("%d runs, %d completed, %d active; %d runs were acknowledged and %d completed before", runs, complete,
				active, atLeast, completedAtLeast)
		}
	}
	close(stop)
	refreshing.Wait()
	t.Logf("%d answers", queries)
	if n := alarms.count.Load(); n > 0 {
		t.Errorf("%d false alarms of damage", n)
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	if differences, err := rollup.Check(ctx, conn); err != nil || len(differences) > 0 {
		t.Errorf("records in the rollup differ from their sources: %+v, %v", differences, err)
	}
	var runs int64
	if err := conn.QueryRow(ctx, "SELECT toInt64(sum(completed)) FROM rollup_runs").Scan(&runs); err != nil ||
		runs != writers*batches*rows {
		t.Errorf("%d completed runs are refreshed, want all %d (%v)", runs, writers*batches*rows, err)
	}
}
