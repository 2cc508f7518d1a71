package rollup_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A move copies two rows of a run, of which one seems older than the watermark. A repair makes the rollup what both
// say: the refresh that comes to the other one reads that one alone.
func TestARepairOfWhatWasStoredSince(t *testing.T) {
	const old = "(SELECT min(first_stored_at) FROM runs)"
	sample := olaptest.NewSample(2)
	for name, statuses := range map[string][]string{
		"the newer version seems older": {"COMPLETED", "RUNNING"},
		"the older version seems older": {"RUNNING", "COMPLETED"},
	} {
		if !sample.Try() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			conn := olaptest.OpenStore(t).Conn()
			loadSmall(t, conn, 2, "COMPLETED")
			all(t, conn)
			statements := []string{"SYSTEM STOP MERGES runs"} // which would make one row of both
			for i, stamp := range []string{old, "now64(3)"} {
				statements = append(statements, fmt.Sprintf("INSERT INTO runs (organization_id, created_at, run_id, agent_id,"+
					" kind, status, updated_at, first_stored_at) SELECT 'acme', '2026-01-05 10:00:00', '%s', '%s', 'agent',"+
					" '%s', toDateTime('2026-01-05 10:00:00') + length('%[3]s'), %[4]s",
					olaptest.ID(50), olaptest.ID(1), statuses[i], stamp))
			}
			execute(t, conn, statements...)
			err := rollup.WithChange(ctx, conn, func(ctx context.Context, c *rollup.Change) error {
				if err := c.Damage(ctx, ofAcme); err != nil {
					return err
				}
				return c.LeaveDamaged(ctx, schema.TableRuns, ofAcme)
			})
			if err != nil {
				t.Fatal(err)
			}
			of := snapshot.Records{Organization: "acme", Source: schema.TableRuns}
			steps(t, rollup.NewChecker(conn, olaptest.Anyone, quiet), func() bool { return state(t, conn).Damage(of) == nil })
			all(t, conn)
			sound(t, conn)
			if n := number(t, conn, "SELECT toInt64(sum(completed)) FROM rollup_runs"); n != 3 {
				t.Errorf("%d runs completed, want 3", n)
			}
		})
	}
}
