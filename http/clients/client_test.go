package clients_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
)

var january = client.Range{Start: "2026-01-01", End: "2026-01-31", Timezone: "UTC"}

func TestCatalogAndQuery(t *testing.T) {
	s := serve(t, 1000)
	c := s.client(nil)
	catalog, err := c.Catalog(t.Context())
	if err != nil || len(catalog.Models) != 2 || catalog.Models[0].Name != "agent_runs" ||
		len(catalog.Models[0].Metrics) != 7 {
		t.Fatal(catalog, err)
	}
	if companions := catalog.Models[0].Dimensions[0].Companions; len(companions) != 1 ||
		companions[0].Name != "agent_name" {
		t.Errorf("companions %v", companions)
	}
	q := client.Query{
		Model: "agent_runs", Metrics: []string{"run_count", "run_success_rate"}, Dimensions: []string{"agent_id"},
		Range:   january,
		Filters: []client.Filter{client.Eq("day", "2026-01-01"), client.In("day", "2026-01-01", "2026-01-02")},
		Order:   []client.OrderTerm{{Member: "run_count", Direction: client.Desc}},
	}
	before := time.Now().Add(-time.Hour)
	r, err := c.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range r.Columns {
		names = append(names, column.Name)
	}
	if !slices.Equal(names, []string{"agent_id", "agent_name", "run_count", "run_success_rate"}) || len(r.Rows) != 1 {
		t.Fatalf("%v %v", names, r.Rows)
	}
	row := r.Rows[0]
	count, whole := row[2].Int64()
	rate, number := row[3].Float64()
	if !row[1].IsNull() || row[1].String() != "" || !whole || count != 2 || !number || rate != 0.5 {
		t.Errorf("row %v", row)
	}
	if _, whole := row[3].Int64(); whole {
		t.Error("0.5 is no whole number")
	}
	if r.AsOf.Before(before) || r.QueryID == "" || r.RequestID == "" || r.Cursor != "" || r.CatalogVersion != "1.0" {
		t.Errorf("%+v", r)
	}
	if want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); !r.Range.EndUTC.Equal(want) {
		t.Errorf("endUtc %v", r.Range.EndUTC)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "non_additive_metric" || r.Warnings[0].Member != "run_success_rate" {
		t.Errorf("warnings %v", r.Warnings)
	}
}

func TestPages(t *testing.T) {
	s := serve(t, 1000)
	q := client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Range: january,
		Limit: 1}
	pages := s.client(nil).Pages(t.Context(), q)
	for range 2 { // an iterator can be used again
		var days []string
		var asOf []time.Time
		for page, err := range pages {
			if err != nil {
				t.Fatal(err)
			}
			days, asOf = append(days, page.Rows[0][0].String()), append(asOf, page.AsOf)
		}
		if !slices.Equal(days, []string{"2026-01-01", "2026-01-02", "2026-01-03"}) || !asOf[0].Equal(asOf[2]) {
			t.Errorf("%v as of %v", days, asOf)
		}
	}
	for page, err := range pages {
		if err != nil || page.Cursor == "" {
			t.Fatal(page, err)
		}
		q.Cursor = page.Cursor
		break
	}
	for page, err := range s.client(nil).Pages(t.Context(), q) {
		if err != nil || page.Rows[0][0].String() != "2026-01-02" {
			t.Fatal(page, err)
		}
		break
	}
	q.Cursor = "" // without a limit a page has 500 rows
	q.Limit = 0
	count := 0
	for range s.client(nil).Pages(t.Context(), q) {
		count++
	}
	if count != 1 {
		t.Errorf("%d pages", count)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for url, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "localhost": "http://localhost", "[::1]:80": "http://[::1]:80",
		"https://a.example/x/": "https://a.example/x", "a.example": "https://a.example",
		"a.example:8443/api": "https://a.example:8443/api", "http://10.0.0.1": "http://10.0.0.1",
		"": "", "ftp://x": "", "http://": "", "http://u:p@x": "", "u:p@x": "", "http://x?y": "", "http://x#y": "",
		"http://x?": "", "http://x#": "", "http://x:y": "", "/x": "",
	} {
		c, err := client.New(client.Config{URL: url, Key: "k"})
		if err != nil && want == "" {
			if strings.Contains(err.Error(), "u:p") {
				t.Errorf("%v shows a password", err)
			}
			continue
		}
		if err != nil || c.URL() != want {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	for _, key := range []string{"", "a b", "a\nb", "ä"} {
		_, err := client.New(client.Config{URL: "localhost", Key: key})
		if err == nil || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
