package olap_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
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

// Whenever records are refreshed, in whatever states and however often, and whatever was copied since, adding them
// up answers what the spec's plainest reading answers.
func TestRollupEqualsTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	caching, inline := olap.NewEngine(conn, []byte("secret")), olap.NewEngine(conn, []byte("secret"))
	caching.Use(asLarge)
	inline.Use(inlineDelta)
	caching.IdleFrom(0)
	refresher := rollup.New(conn, quiet, 0)
	organizations := 0
	checkProperty(t, 4, func(t *rapid.T) {
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
					merge(t, conn, table)
				}
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
	if differences, err := rollup.Check(ctx, conn); err != nil || len(differences) > 0 {
		t.Errorf("records in the rollup differ from their sources: %+v, %v", differences, err)
	}
}

// A cached delta, also an empty one, is valid until something is stored or refreshed.
func TestEveryAnswerHasWhatWasAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.Use(asLarge)
	engine.IdleFrom(0)
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

// A countingConn counts the statements that read the delta apart from others.
type countingConn struct {
	driver.Conn
	reads   atomic.Int64
	further atomic.Int64 // of those, the ones that complete a cached delta
}

func (c *countingConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if strings.Contains(sql, "was_in_rollup") && strings.Contains(sql, "{most:UInt64}") {
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
	t.Parallel()
	store := olaptest.OpenStore(t).Conn()
	conn := &countingConn{Conn: store}
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.Use(asLarge)
	engine.IdleFrom(0)
	refresher := rollup.New(store, quiet, 0)
	refreshed(t, refresher)
	totals := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	people := olaptest.Query{
		Model: "agent_runs", Metrics: []string{"unique_initiator_count"}, Dimensions: []string{"user_identifier", "day"},
		Range: january, Limit: 10,
	}
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
			olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{other}, Attributions: []olaptest.Attribution{{
				Organization: "acme", ID: other.ID, RunID: other.ID, AgentID: other.AgentID, Identifier: "ada@example.com",
				Activity: "interacted", InitiationType: "human", Source: "web", OccurredAt: other.CreatedAt,
			}}})
		}
		if got := conn.reads.Load() - reads; got != 1 {
			t.Errorf("%d statements read the delta, want 1", got)
		}
		if got := conn.further.Load() - furtherReads; got != further {
			t.Errorf("%d statements completed the cached delta, want %d", got, further)
		}
	}
}
