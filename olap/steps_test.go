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

// Beside a refresh batch, changes cannot be read to be remembered. A query waits for the end of the step; of one that
// takes too long, only once.
func TestStepsAreWaitedFor(t *testing.T) {
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
	expect := func(when string, want float64, remembered int) {
		t.Helper()
		if got := ask(t, engine, "acme", q).Rows[0][0]; got != want || engine.CachedDelta("acme", "runs") != remembered {
			t.Errorf("%s: %v runs, want %v; %d changes are remembered, want %d", when, got, want,
				engine.CachedDelta("acme", "runs"), remembered)
		}
	}
	ask(t, engine, "acme", q) // the first look is not remembered: an older server's inserts may not be counted
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
		t.Error("a query was answered beside a step")
	}
	engine.WaitForBatches(0)
	expect("after a wait in vain", 2, 0)
	engine.WaitForBatches(time.Hour)
	expect("beside a step known to be long", 2, 0)
	begin("commit")
	expect("after the step", 2, 1)
}
