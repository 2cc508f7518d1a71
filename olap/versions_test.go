package olap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
)

// Pairs count by the state of the newest version of their run, in whatever order its versions were copied, inside the
// join window and outside it, in totals that join all versions and together with counts of rows, which those must not
// repeat.
func TestPairsCountTheNewestVersionOfTheirRun(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	// The large one joins all versions.
	engine, large := engineWith(store.Conn(), plan.Options{}), engineWith(store.Conn(), asLarge)
	execute(t, store.Conn(), "SYSTEM STOP MERGES runs")
	const runs = 40
	statuses := []string{"RUNNING", "FAILED", "COMPLETED"}
	for first, order := range map[int][]int{0: {0, 1, 2}, runs: {2, 1, 0}} {
		for step := range statuses {
			var records olaptest.Records
			for n := range runs {
				version := order[step]
				run := runOn(first+n, 1+n%28, statuses[version])
				if n%2 == 1 { // outside the join window
					run.CreatedAt = run.CreatedAt.AddDate(0, -3, 0)
				}
				run.UpdatedAt = run.UpdatedAt.Add(time.Duration(version) * time.Hour)
				records.Runs = append(records.Runs, run)
				if step == 0 {
					record := run.By("ada@example.com")
					record.OccurredAt = time.Date(2026, 1, 1+n%28, 13, 0, 0, 0, time.UTC)
					records.Attributions = append(records.Attributions, record)
				}
			}
			olaptest.Load(t, store.Conn(), records)
		}
	}
	pairs := []string{"attributed_run_count", "completed_attributed_run_count", "failed_attributed_run_count",
		"active_attributed_run_count"}
	year := olaptest.Range{Start: "2025-02-01", End: "2026-01-31", Timezone: "UTC"}
	for _, q := range []olaptest.Query{
		{Metrics: pairs, Range: january},
		{Metrics: pairs, Range: year},
		{Metrics: append(pairs, "interaction_count"), Range: january},
		{Metrics: append(pairs, "interaction_count"), Range: year},
		{Metrics: pairs, Range: january, Dimensions: []string{"user_identifier"}},
	} {
		q.Model, q.Limit = "agent_user_activity", 10
		for _, engine := range []*olap.Engine{engine, large} {
			row := ask(t, engine, "acme", q).Rows[0]
			want := []any{80.0, 80.0, 0.0, 0.0, 80.0}[:len(q.Metrics)]
			if got := row[len(row)-len(want):]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v by %v, %s: %v, want %v", q.Metrics, q.Dimensions, q.Range.Start, got, want)
			}
		}
	}
}
