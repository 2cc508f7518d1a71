package olap_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// What was resolved counts once before any refresh, in every strategy.
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
		"other-clock":   {{Attributions: []olaptest.Attribution{first}}, {Attributions: []olaptest.Attribution{later}}},
		"other-content": {{Attributions: []olaptest.Attribution{first}}, {Attributions: []olaptest.Attribution{other}}},
	} {
		since := storeClock(t, conn)
		for _, records := range stored {
			for i := range records.Runs {
				records.Runs[i].Organization = organization
			}
			for i := range records.Attributions {
				records.Attributions[i].Organization = organization
			}
			olaptest.Load(t, conn, records)
			pass(t, conn, 2*time.Millisecond)
		}
		ofRuns := stored[0].Runs != nil
		if found, err := rollup.New(conn, quiet, 0).Resolve(t.Context(), since); err != nil || found == ofRuns {
			t.Fatalf("%s: attribution records were found: %t, %v", organization, found, err)
		}
		q, want := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count"},
			Range: january, Limit: 100}, [][]any{{1.0, 1.0}}
		if !ofRuns {
			q.Model, q.Metrics, q.Dimensions = "agent_user_activity", []string{"interaction_count"}, []string{"activity_type"}
			want = [][]any{{"interacted", 1.0}}
		}
		for name, e := range engines {
			if got := ask(t, e, organization, q).Rows; !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: %v, want %v", organization, name, got, want)
			}
		}
	}
}
