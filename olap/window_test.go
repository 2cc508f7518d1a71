package olap_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A run whose created_at moved out of the join window, and that has been given another status there, is looked up: what
// the window still has of it does not count.
func TestARunThatMovedOutOfTheJoinWindow(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	execute(t, conn, "SYSTEM STOP MERGES runs") // which take the old row away
	run := runOn(1, 10, "RUNNING")
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run},
		Attributions: []olaptest.Attribution{run.By("ada@example.com")}})
	run.CreatedAt, run.UpdatedAt, run.Status = run.CreatedAt.AddDate(-1, 0, 0), run.UpdatedAt.Add(time.Hour), "COMPLETED"
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run}})
	refreshed(t, rollup.New(conn, quiet, 0)) // finds that it moved
	engine := engineWith(conn, asLarge)
	got := ask(t, engine, "acme", olaptest.Query{Model: "agent_user_activity", Limit: 100,
		Metrics: []string{"completed_attributed_run_count", "active_attributed_run_count"},
		Range:   olaptest.Range{Start: "2026-01-05", End: "2026-01-15", Timezone: "UTC"}})
	if row := got.Rows[0]; row[0] != 1.0 || row[1] != 0.0 {
		t.Errorf("%v completed and %v active, want 1 and none", row[0], row[1])
	}
}
