package report

import "testing"

// A week that was asked for is not asked again as the one that the next week is compared with.
func TestWeeksAreAskedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		compare string
		want    int
	}{"alone": {"", 4}, "previous": {"previous", 5}, "year": {"year", 8}} {
		r := Run{Question: Question{Model: "agent_runs", Metrics: []string{"run_count"}, Grain: "week", WeekStart: "monday",
			Start: "2026-10-19", End: "2026-11-15", Timezone: "UTC", Limit: 100, Compare: c.compare}}
		if err := r.Check(now); err != nil {
			t.Fatal(err)
		}
		if got := r.Queries(); len(got) != c.want {
			t.Errorf("%s: %d queries, want %d: %v", name, len(got), c.want, got)
		}
	}
}
