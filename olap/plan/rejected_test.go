package plan

import (
	"slices"
	"testing"
)

// Every strategy but the chosen one is rejected by a rule, and every reason is explained.
func TestRejected(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		facts  Facts
		chosen Strategy
		want   []Rejection
	}{
		"small": {runs, Facts{AsOf: asOf}, Base, []Rejection{
			{RollupAggregates, RowsBelowThreshold}, {RollupRows, RowsBelowThreshold}}},
		"aggregates": {runs, large, RollupAggregates, []Rejection{
			{RollupRows, SlowerThanChosen}, {Base, SlowerThanChosen}}},
		"rows": {initiators, large, RollupRows, []Rejection{
			{RollupAggregates, RangeOffSpans}, {Base, SlowerThanChosen}}},
		"states": {states, large, Base, []Rejection{
			{RollupAggregates, MemberNotInRollup}, {RollupRows, MemberNotInRollup}}},
	} {
		p := needs(t, c.body, "2026-01-01", "2026-01-31", "UTC").Plan(c.facts)
		if got := p.Rejected(); p.Strategy != c.chosen || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, rejected %q, want %v and %q", name, p.Strategy, got, c.chosen, c.want)
		}
		for _, r := range c.want {
			if r.Reason.Meaning() == "" {
				t.Errorf("%q is not explained", string(r.Reason))
			}
		}
	}
}
