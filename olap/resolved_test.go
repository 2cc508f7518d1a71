package olap_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// What was resolved, or pushed, counts once before any refresh, in every strategy.
func TestResolvedRecordsCountOnce(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engines := trusting(conn)
	older, newer := runOn(1, 1, "RUNNING"), runOn(1, 2, "COMPLETED")
	first := runOn(1, 5, "").By("ada@example.com")
	later, other := first, first
	later.OccurredAt, other.Activity = first.OccurredAt.Add(time.Hour), "associated"
	for organization, stored := range map[string][]olaptest.Records{
		"moved-run":     {{Runs: []olaptest.Run{older}}, {Runs: []olaptest.Run{newer}}},
		"older-version": {{Runs: []olaptest.Run{newer}}, {Runs: []olaptest.Run{older}}},
		"two-clocks":    {{Runs: []olaptest.Run{newer, older}}},
		"other-clock":   {{Attributions: []olaptest.Attribution{first}}, {Attributions: []olaptest.Attribution{later}}},
		"other-content": {{Attributions: []olaptest.Attribution{first}}, {Attributions: []olaptest.Attribution{other}}},
	} {
		for _, pushed := range []bool{false, true} {
			if pushed {
				organization = "pushed-" + organization
			}
			since := storeClock(t, conn)
			for _, records := range stored {
				for i := range records.Runs {
					records.Runs[i].Organization = organization
				}
				for i := range records.Attributions {
					records.Attributions[i].Organization = organization
				}
				if pushed {
					pushBatch(t, conn, records)
				} else {
					olaptest.Load(t, conn, records)
				}
				pass(t, conn, 2*time.Millisecond)
			}
			ofRuns := stored[0].Runs != nil
			if !pushed {
				found, err := rollup.New(conn, quiet, 0).Resolve(t.Context(), since)
				merged := organization == "other-content" && !found // into the first one, before it was looked for
				if err != nil || found == ofRuns && !merged {
					t.Fatalf("%s: attribution records were found: %t, %v", organization, found, err)
				}
			}
			q, want := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count"},
				Range: january, Limit: 100}, [][]any{{1.0, 1.0}}
			if !ofRuns {
				q.Model, q.Metrics, q.Dimensions = "agent_user_activity", []string{"interaction_count", "attributed_run_count"},
					[]string{"activity_type", "day"}
				want = [][]any{{"interacted", "2026-01-05", 1.0, 1.0}}
			}
			for name, e := range engines {
				if got := ask(t, e, organization, q).Rows; !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: %v, want %v", organization, name, got, want)
				}
			}
		}
	}
}
