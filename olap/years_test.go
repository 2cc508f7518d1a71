package olap_test

import (
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

// Ranges of any year and zone count what lies in them, in small and in large organizations, also where they begin
// before the first instant or end after the last one that ClickHouse's times can hold. Rows and ranges lie around the
// ends of years, of which those of leap years after 2037 have been a trap.
func TestRangesOfEveryYear(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	small, large := engineWith(store.Conn(), plan.Options{}), engineWith(store.Conn(), asLarge)
	random := rand.New(rand.NewPCG(1, 9999))

	var records olaptest.Records
	record := func(at time.Time) {
		n := len(records.Runs)
		run := runOn(n, 1, []string{"COMPLETED", "FAILED", "RUNNING"}[n%3])
		run.CreatedAt = at
		records.Runs = append(records.Runs, run)
		records.Attributions = append(records.Attributions, run.By("ada@example.com"))
	}
	record(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)) // the first and the last instant of a record (contract 3)
	record(time.Date(2261, 12, 31, 23, 59, 59, 999e6, time.UTC))
	years := []int{1900, 1904, 1971, 2000, 2039, 2040, 2048, 2096, 2100, 2260}
	for _, year := range years {
		for range 40 {
			record(time.Date(year, 12, 31, random.IntN(48), 0, 0, -random.IntN(2)*1e6, time.UTC)) // or the millisecond before
		}
	}
	olaptest.Load(t, store.Conn(), records)
	refreshed(t, rollup.New(store.Conn(), quiet, 0))

	list, err := os.ReadFile("daterange/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	zones := strings.Split(strings.TrimSpace(string(list)), "\n")[1:]
	const ranges = 60
	rows, tried, sample := 0, 0, olaptest.NewSample(6)
	for n := range ranges {
		year := years[random.IntN(len(years))]
		if n%4 == 0 {
			year = 1 + random.IntN(9997)
		}
		end := time.Date(year, 12, 30+random.IntN(3), 0, 0, 0, 0, time.UTC)
		start := end.AddDate(0, 0, -random.IntN(2)*random.IntN(366))
		if start.Year() < 1 {
			start = end
		}
		of := olaptest.Range{Start: start.Format(time.DateOnly), End: end.Format(time.DateOnly),
			Timezone: zones[random.IntN(len(zones))]}
		if !sample.Try() {
			continue
		}
		tried++
		for _, q := range []olaptest.Query{
			{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count"}, Dimensions: []string{"day"}, Range: of,
				Limit: 100},
			{Model: "agent_user_activity", Metrics: []string{"attributed_run_count", "failed_attributed_run_count"}, Range: of,
				Limit: 100},
		} {
			want := olaptest.Evaluate(records, "acme", q)
			rows += len(want)
			for name, engine := range map[string]*olap.Engine{"small": small, "large": large} {
				if got := all(t, engine, "acme", q); len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %v by %v: got %v, want %v", name, q.Range, q.Dimensions, got, want)
				}
			}
		}
	}
	if rows < tried {
		t.Errorf("%d rows of %d ranges prove little", rows, tried)
	}
}
