package olap_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Aggregates by person are kept by the week, those by agent by the hour, and people of a day are distinguished by the
// quarter of an hour, unless days begin within one, as they did in Monrovia until 1972, at 00:44:30 UTC. Runs at the
// first and the last instant of a week, of an hour, of a day, and of the range count once if they lie in it, whatever
// the zone and the century, refreshed or not, and changed since or not.
func TestRangesOfWholeWeeks(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := engineWith(store.Conn(), asLarge)

	var rollupRuns, changes olaptest.Records
	statuses := []string{"COMPLETED", "FAILED", "RUNNING"}
	record := func(at time.Time) {
		n := len(rollupRuns.Runs)
		run := runOn(n, 1, statuses[n%3])
		run.CreatedAt, run.AgentID = at, olaptest.ShortID(n%2)
		identifier, name := fmt.Sprintf("person%d@example.com", n%11), fmt.Sprint("Name ", n%5)
		if n%11 > 0 {
			run.Identifier, run.Name = &identifier, &name
		}
		rollupRuns.Runs = append(rollupRuns.Runs, run)
		if n%9 == 0 {
			other := "other@example.com"
			run.Status, run.Identifier, run.UpdatedAt = "CANCELLED", &other, run.UpdatedAt.Add(time.Hour)
			changes.Runs = append(changes.Runs, run)
		}
	}
	// Thursdays, on which weeks begin.
	thursdays := []time.Time{time.Date(1910, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 4, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, thursday := range thursdays {
		for week := range 18 {
			for _, ms := range []time.Duration{-1, 0} {
				for _, offset := range []time.Duration{-24 * time.Hour, -9 * time.Hour, -345 * time.Minute, -time.Hour, 0,
					2670 * time.Second, 5 * time.Hour, 24 * time.Hour} {
					record(thursday.AddDate(0, 0, 7*week).Add(offset + ms*time.Millisecond))
				}
			}
		}
	}
	olaptest.Load(t, store.Conn(), rollupRuns)
	refreshed(t, rollup.New(store.Conn(), quiet, 0))

	records, sample := rollupRuns, olaptest.NewSample(36)
	for _, change := range []olaptest.Records{{}, changes} {
		olaptest.Load(t, store.Conn(), change)
		records.Runs = slices.Concat(records.Runs, change.Runs)
		for _, thursday := range thursdays {
			for _, days := range [][2]int{{0, 111}, {0, 112}, {-1, 111}, {1, 110}, {7, 13}, {7, 12}, {8, 119}} {
				for _, zone := range []string{"UTC", "Asia/Tokyo", "America/New_York", "Asia/Kathmandu", "Africa/Monrovia"} {
					for _, dimensions := range [][]string{nil, {"day"}, {"user_identifier"}, {"agent_id"}} {
						if !sample.Try() {
							continue
						}
						date := func(day int) string { return thursday.AddDate(0, 0, day).Format(time.DateOnly) }
						q := olaptest.Query{Model: "agent_runs", Metrics: []string{"completed_run_count", "unique_initiator_count"},
							Dimensions: dimensions,
							Range:      olaptest.Range{Start: date(days[0]), End: date(days[1]), Timezone: zone}, Limit: 100}
						if len(dimensions) > 0 && dimensions[0] == "agent_id" {
							q.Metrics = q.Metrics[:1] // by agent nothing is kept of people
						}
						want, got := olaptest.Evaluate(records, "acme", q), all(t, engine, "acme", q)
						if len(want) == 0 || !reflect.DeepEqual(got, want) {
							t.Errorf("%v by %v: got %v, want %v", q.Range, dimensions, got, want)
						}
					}
				}
			}
		}
	}
}
