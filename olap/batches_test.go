package olap_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
)

// During a refresh batch the delta cannot be read into the cache. A query waits for the end of the batch; for a batch
// that takes too long, only once.
func TestBatchesAreWaitedFor(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.TakeAsLarge()
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 1, "RUNNING")}})
	refreshed(t, rollup.New(conn, quiet, 0))
	begin := func(kind string) {
		t.Helper()
		if err := conn.Exec(ctx, "INSERT INTO rollup_log (kind, latest) SELECT $1, (tupleElement(latest, 1) + 1, "+
			"tupleElement(latest, 2), now64(3, 'UTC')) FROM rollup_log FINAL WHERE kind = 'commit'", kind); err != nil {
			t.Fatal(err)
		}
	}
	q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	expect := func(when string, want float64, cached int) {
		t.Helper()
		if got := ask(t, engine, "acme", q).Rows[0][0]; got != want || engine.CachedDelta("acme", "runs") != cached {
			t.Errorf("%s: %v runs, want %v; %d rows of the delta are cached, want %d", when, got, want,
				engine.CachedDelta("acme", "runs"), cached)
		}
	}
	ask(t, engine, "acme", q) // the first reading is not cached: inserts of an older server may not be counted
	expect("before", 1, 0)

	begin("begin")
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(2, 2, "RUNNING")}})
	engine.WaitForBatches(time.Hour)
	parsed, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01",` +
		`"end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := engine.Run(impatient, olap.Request{OrganizationID: "acme", Query: parsed,
		QueryID: uuid.New()}); err == nil {
		t.Error("a query was answered during a batch")
	}
	engine.WaitForBatches(0)
	expect("after a wait in vain", 2, 0)
	engine.WaitForBatches(time.Hour)
	expect("during a batch that took too long before", 2, 0)
	begin("commit")
	expect("after the batch", 2, 1)
}
