package olap_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

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

// sound checks that the rollup is what its sources say.
func sound(t *testing.T, conn driver.Conn) {
	t.Helper()
	if found, err := rollup.Check(t.Context(), conn); err != nil || len(found) > 0 {
		t.Errorf("the rollup differs from its sources: %+v, %v", found, err)
	}
}

// Whenever records are refreshed, in whatever states and however often, and whatever was copied since, adding them
// up answers what the spec's plainest reading answers.
func TestRollupEqualsTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	caching, inline := engineWith(conn, asLarge), engineWith(conn, inlineDelta)
	caching.Margin(0)
	refresher := rollup.New(conn, quiet, 0)
	checkProperty(t, 4, func(t *rapid.T) {
		organization, records := drawn(t)
		for _, batch := range records.Batches(t) {
			olaptest.Load(t, conn, batch)
			switch n := rapid.IntRange(0, 29).Draw(t, "maintenance"); {
			case n < 12:
				refreshed(t, refresher)
			case n == 12:
				merge(t, conn)
			case n < 19: // a delta is cached, which later records complete
				ask(t, caching, organization, olaptest.DrawSum(t))
			case n == 19:
				if err := rollup.Rebuild(ctx, conn); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 6 {
			engine := rapid.SampledFrom([]*olap.Engine{caching, inline}).Draw(t, "engine")
			compare(t, engine, records, organization, olaptest.DrawSum(t))
		}
	})
	sound(t, conn)
}

// A cached delta, also an empty one, is valid until something is stored or refreshed.
func TestEveryAnswerHasWhatWasAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engine := newEngine(conn)
	engine.Use(asLarge)
	refresher := rollup.New(conn, quiet, 0)
	for n := range 12 {
		for read := range 4 {
			if n%3 == 0 && read == 2 {
				refreshed(t, refresher)
			}
			if got := ask(t, engine, "acme", totals).Rows[0][0].(float64); got != float64(n) {
				t.Fatalf("%v runs, want %d", got, n)
			}
		}
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1, "RUNNING")}})
	}
}

// The delta is read once, whatever the queries, until something is stored of the same organization in the same source.
// Then only what was stored since is read, until something is refreshed.
func TestDeltaIsReadOnce(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t).Conn()
	conn := olaptest.Hold(store)
	read := func() (all, further int64) { // statements that read a delta apart, and of those the ones that complete one
		for _, sql := range conn.Texts() {
			if strings.Contains(sql, "was_in_rollup") && strings.Contains(sql, "{most:UInt64}") {
				if all++; strings.Contains(sql, "NOT IN") {
					further++
				}
			}
		}
		return all, further
	}
	engine := newEngine(conn)
	engine.Use(asLarge)
	refresher := rollup.New(store, quiet, 0)
	refreshed(t, refresher)
	people := olaptest.Query{
		Model: "agent_runs", Metrics: []string{"unique_initiator_count"}, Dimensions: []string{"user_identifier", "day"},
		Range: january, Limit: 10,
	}
	// It may take some time until no insert is left that might have begun before stored rows were counted.
	for reads := int64(0); reads == 0; reads, _ = read() {
		ask(t, engine, "acme", totals)
	}
	ask(t, engine, "acme", totals)
	for n, further := range []int64{0, 1, 1, 0, 1} { // before the first one there are no changes
		if n == 3 {
			refreshed(t, refresher)
		}
		readBefore, furtherBefore := read()
		olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1, "RUNNING")}})
		for range 3 {
			if got := ask(t, engine, "acme", totals).Rows[0][0].(float64); got != float64(n+1) {
				t.Fatalf("%v runs, want %d", got, n+1)
			}
			ask(t, engine, "acme", people)
			other := runOn(n, 1, "RUNNING")
			other.Organization = "globex"
			olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{other},
				Attributions: []olaptest.Attribution{runOn(n, 1, "").By("ada@example.com")}})
		}
		reads, furtherReads := read()
		if got := reads - readBefore; got != 1 {
			t.Errorf("%d statements read the delta, want 1", got)
		}
		if got := furtherReads - furtherBefore; got != further {
			t.Errorf("%d statements completed the cached delta, want %d", got, further)
		}
	}
}
