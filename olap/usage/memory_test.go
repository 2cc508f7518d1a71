package usage_test

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/usage"
)

// However many questions wait for the store, and however long they are, what waits takes some MiB.
func TestWhatWaitsIsBounded(t *testing.T) {
	model := catalog.Models[1]
	body := map[string]any{"model": model.Name,
		"range": map[string]any{"start": "2025-06-01", "end": "2026-05-31", "timezone": "America/Argentina/Buenos_Aires"}}
	var metrics, dimensions []string
	for _, m := range model.Metrics {
		metrics = append(metrics, m.Name)
	}
	var filters []any
	for _, d := range model.Dimensions {
		dimensions = append(dimensions, d.Name)
		values := make([]string, query.MaxFilterValues)
		for i := range values {
			values[i] = "2026-01-01" // which is valid for every dimension
		}
		filters = append(filters, map[string]any{"member": d.Name, "op": "in", "values": values})
	}
	body["metrics"], body["dimensions"], body["filters"] = metrics, dimensions, filters
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	l := usage.NewLog(nil, quiet)
	before := olaptest.Heap()
	const long = 300
	var last usage.Entry
	for range long {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		last = usage.Entry{OrganizationID: "acme", KeyID: "a", Shape: usage.ShapeOf(q)}
		l.Record(last)
	}
	if taken := olaptest.Heap() - before; taken > long*4<<10 {
		t.Errorf("%d long questions take %d KiB", long, taken>>10)
	}
	for range 20_000 { // more than may wait
		l.Record(last)
	}
	if taken := olaptest.Heap() - before; taken > 16<<20 {
		t.Errorf("%d KiB wait", taken>>10)
	}
	runtime.KeepAlive(l)
}
