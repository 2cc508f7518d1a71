package olap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
)

// However many records an organization has, the statement that counts its pairs in hash buckets is right: the shortest
// and the longest question of an organization that is taken for the largest.
func TestTheLargestOrganizationIsAnswered(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	var records olaptest.Records
	for i := range 200 {
		run := runOn(i, 1+i%28, "COMPLETED")
		records.Runs = append(records.Runs, run)
		records.Attributions = append(records.Attributions, run.By("ada@example.com"))
	}
	olaptest.Load(t, conn, records)
	short := olaptest.Query{Model: "agent_user_activity", Limit: 100,
		Metrics: []string{"attributed_run_count", "completed_attributed_run_count"},
		Range:   olaptest.Range{Start: "2025-06-01", End: "2026-05-31", Timezone: "Europe/Stockholm"}}
	long := short
	long.Metrics = nil
	for _, m := range catalog.Find(long.Model).Metrics {
		long.Metrics = append(long.Metrics, m.Name)
	}
	for _, d := range []string{"agent_id", "user_identifier", "user_domain", "activity_type", "run_initiation_type",
		"source", "day", "agent_id"} {
		values := map[string]string{"agent_id": olaptest.ShortID(1).String(), "user_identifier": "ada@example.com",
			"user_domain": "example.com", "activity_type": "interacted", "run_initiation_type": "human", "source": "web"}
		f := olaptest.Filter{Member: d, Op: "in", Values: []string{values[d]}}
		if d == "day" {
			f.Values = nil
			for day := range 28 {
				f.Values = append(f.Values, fmt.Sprintf("2026-01-%02d", day+1))
			}
		}
		for len(f.Values) < 50 && d != "day" && d != "agent_id" {
			f.Values = append(f.Values, strings.Repeat("v", len(f.Values)+1))
		}
		long.Filters = append(long.Filters, f)
	}
	for name, q := range map[string]olaptest.Query{"short": short, "long": long} {
		engine := engineWith(conn, plan.Options{Records: 4_000_000_000}) // a thousand buckets' worth
		got := ask(t, engine, "acme", q)
		for i, column := range got.Columns {
			if column.Name == "attributed_run_count" || column.Name == "completed_attributed_run_count" {
				if got.Rows[0][i] != 200.0 {
					t.Errorf("%s: %s is %v, want 200", name, column.Name, got.Rows[0][i])
				}
			}
		}
	}
}
