package olap_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// Of a large organization's records of a long range, those at the first and the last instant of a
// month, and of the range, count once if they lie in it, whatever the zone and the century.
func TestRangesOfWholeMonths(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.Use(asLarge)

	var records olaptest.Records
	record := func(at time.Time) {
		n := len(records.Attributions)
		run := runOn(n, 1, []string{"COMPLETED", "FAILED", "RUNNING"}[n%3])
		run.CreatedAt = at
		records.Runs = append(records.Runs, run)
		records.Attributions = append(records.Attributions, olaptest.Attribution{Organization: "acme", ID: run.ID,
			RunID: run.ID, AgentID: olaptest.ShortID(n % 2),
			Identifier: "ada@example.com", Activity: "initiated", InitiationType: "human", Source: "web", OccurredAt: at})
	}
	years := []int{1900, 1969, 2026, 2200} // the first one, before 1970, now, after 2106
	for _, year := range years {
		for month := time.January; month <= time.December; month++ {
			first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
			for _, ms := range []time.Duration{-1, 0} {
				for _, offset := range []time.Duration{-12 * time.Hour, -9 * time.Hour, -time.Hour, 0, 5 * time.Hour} {
					if at := first.Add(offset + ms*time.Millisecond); at.Year() >= 1900 {
						record(at)
					}
				}
			}
		}
	}
	olaptest.Load(t, store.Conn(), records)

	sample := olaptest.NewSample(4)
	for _, year := range years {
		for _, days := range [][2]string{{"01-01", "12-31"}, {"02-01", "08-31"}, {"02-02", "08-30"}, {"01-31", "09-01"}} {
			for _, zone := range []string{"UTC", "Asia/Tokyo", "America/New_York"} {
				for _, dimensions := range [][]string{nil, {"agent_id"}} {
					if !sample.Try() {
						continue
					}
					q := olaptest.Query{Model: "agent_user_activity",
						Metrics: []string{"attributed_run_count", "completed_attributed_run_count"}, Dimensions: dimensions,
						Range: olaptest.Range{Start: fmt.Sprintf("%d-%s", year, days[0]), End: fmt.Sprintf("%d-%s", year, days[1]),
							Timezone: zone}, Limit: 10}
					want, got := olaptest.Evaluate(records, "acme", q), all(t, engine, "acme", q)
					if len(want) == 0 || !reflect.DeepEqual(got, want) {
						t.Errorf("%v by %v: got %v, want %v", q.Range, dimensions, got, want)
					}
				}
			}
		}
	}
}
