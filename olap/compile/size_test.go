package compile

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
)

// The longest statement, that of every metric and of 8 filters in hash buckets for any number of records, is far below
// what ClickHouse parses: max_query_size, by default 256 KiB.
func TestHashBucketsFitIntoAStatement(t *testing.T) {
	var metrics []string
	for _, m := range catalog.Models[1].Metrics {
		metrics = append(metrics, m.Name)
	}
	var filters []map[string]any
	for range 8 {
		var days []string
		for i := range query.MaxFilterValues {
			days = append(days, time.Date(2025, 6, 1+7*i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
		}
		filters = append(filters, map[string]any{"member": "day", "op": "in", "values": days})
	}
	for _, members := range []int{1, len(metrics)} {
		body, err := json.Marshal(map[string]any{"model": catalog.Models[1].Name, "filters": filters,
			"metrics": metrics[len(metrics)-members:],
			"range":   map[string]any{"start": "2025-06-01", "end": "2026-05-31", "timezone": "Africa/Casablanca"}})
		if err != nil {
			t.Fatal(err)
		}
		q, err := query.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		p := plan.Of(q).Plan(plan.Facts{Records: 1 << 40})
		if p.HashBuckets < 2 {
			t.Errorf("%d hash buckets", p.HashBuckets)
		}
		length := len(Compile(Input{Plan: p, Organization: "acme"}).SQL)
		t.Logf("%d metrics in %d buckets: %d KiB", members, p.HashBuckets, length>>10)
		if length > 192<<10 {
			t.Errorf("%d metrics in %d buckets take %d KiB", members, p.HashBuckets, length>>10)
		}
	}
}
