package snapshot_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

// Inserts of runs and of attribution records are in flight until they end.
func TestInsertsInFlight(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for columns, last := range map[string]string{
		"runs (organization_id, run_id, created_at, agent_id, updated_at)":              "now64(3)",
		"attributions (organization_id, attribution_id, occurred_at, agent_id, run_id)": "generateUUIDv4()",
	} {
		ended := make(chan error, 1)
		go func() {
			ended <- conn.Exec(t.Context(), "INSERT INTO "+columns+` SELECT 'acme', generateUUIDv4(),
				toDateTime64('2026-01-02 12:00:00', 3, 'UTC'), generateUUIDv4(), `+last+` FROM numbers(4)
				WHERE sleepEachRow(0.5) = 0 SETTINGS max_block_size = 1`)
		}()
		seen := false
		for running := true; running; {
			in, err := snapshot.ReadInserts(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			seen = seen || in.Now.Sub(in.Oldest) > 100*time.Millisecond
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
		}
		if !seen {
			t.Errorf("no insert was seen in flight: %s", columns)
		}
	}
}
