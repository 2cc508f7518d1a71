package olap_test

import (
	"context"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Rows of an insert that failed when they were visible already are counted nowhere. They are in every answer from then
// on: in one that was cached, in one that rests on a cached delta, and in that of a server that starts later.
func TestRowsOfFailedInserts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	small, large := cachingEngine(conn), cachingEngine(conn)
	large.Use(asLarge)
	large.Margin(0)
	days := byDay(31)
	asked := func(want float64) {
		t.Helper()
		late := olap.NewEngine(conn, []byte("secret"))
		for name, engine := range map[string]*olap.Engine{"small": small, "large": large, "late": late} {
			for range 3 {
				if got := ask(t, engine, "acme", totals).Rows[0][0]; got != want {
					t.Errorf("%s: %v runs, want %v", name, got, want)
				}
				if runs := summed(all(t, engine, "acme", days)); runs != want {
					t.Errorf("%s: %v runs on all days, want %v", name, runs, want)
				}
			}
		}
	}
	for n := range 12 {
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1+n, "FAILED")}})
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(12, 13, "FAILED")}})
	for large.CachedDelta("acme", "runs") != 1 {
		asked(13)
	}
	asked(13)
	// The view fails that counts what was stored.
	const never = "ALTER TABLE insert_counters ADD CONSTRAINT never CHECK source != 'runs'"
	execute(t, conn, never)
	err := conn.Exec(ctx, `INSERT INTO runs (organization_id, run_id, created_at, agent_id, kind, status, updated_at)
		SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-20 12:00:00', 3, 'UTC'), generateUUIDv4(), 'agent', 'FAILED',
			now64(3) FROM numbers(6)`)
	if err == nil {
		t.Fatal("the insert did not fail")
	}
	asked(19)
	execute(t, conn, "ALTER TABLE insert_counters DROP CONSTRAINT never")
	asked(19)
}
