package report

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runlens/runlens/http/client"
)

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

// What Queries says is what is asked: pages of a year before are not kept until then.
func TestQueriesAreThoseThatAreAsked(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{"columns":[{"name":"run_count","type":"number","member":"run_count"}],"rows":[[1]]}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for _, compare := range []string{"previous", "year"} {
		r := Run{Client: c, Question: Question{Model: "agent_runs", Metrics: []string{"run_count"}, Grain: "week",
			WeekStart: "monday", Start: "2024-10-28", End: "2026-11-15", Timezone: "UTC", Limit: 100, All: true,
			Compare: compare}}
		if err := r.Check(now); err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		table, err := r.Table(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range table.Rows {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := int64(len(r.Queries())); got != asked.Load() {
			t.Errorf("%s: %d queries are said, and %d asked", compare, got, asked.Load())
		}
	}
}

// All rows of a body in the order of a metric are at most one page of 500: who asks learns where it ends there.
func TestBodyInOrderOfMetric(t *testing.T) {
	for count, want := range map[int][]string{0: nil, client.MaxLimit - 1: nil, client.MaxLimit: {
		"The first 500 rows in the order of a metric; the API gives at most 500 of them. " +
			"In the order of dimensions all rows come."}} {
		rows := strings.TrimSuffix(strings.Repeat(`["a",1],`, count), ",")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"columns":[{"name":"user_type","type":"string","member":"user_type"},`+
				`{"name":"run_count","type":"number","member":"run_count"}],"rows":[`+rows+`]}`)
		}))
		defer server.Close()
		c, err := client.New(client.Config{URL: server.URL, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		r := Run{Client: c, Question: Question{All: true}, Body: &client.Query{Metrics: []string{"run_count"},
			Dimensions: []string{"user_type"}, Order: []client.OrderTerm{{Member: "run_count", Direction: client.Desc}}}}
		if err := r.Check(now); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Table(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Facts.Notes, want) {
			t.Errorf("%d rows: %q, want %q", count, r.Facts.Notes, want)
		}
	}
}

// A run whose comparison fails leaves nothing behind: programs that go on for days ask again and again.
func TestFailedRunsLeaveNothing(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked%2 == 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		io.WriteString(w, `{"columns":[{"name":"run_count","type":"number","member":"run_count"}],"rows":[[1]]}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 50
	before := runtime.NumGoroutine()
	for range runs {
		r := Run{Client: c, Question: Question{Model: "agent_runs", Metrics: []string{"run_count"}, Limit: 100,
			Start: "2026-10-19", End: "2026-11-15", Timezone: "UTC", WeekStart: "monday", Compare: "previous"}}
		if err := r.Check(now); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Table(context.Background()); err == nil {
			t.Fatal("a refused comparison is answered")
		}
	}
	if more := runtime.NumGoroutine() - before; more > runs/2 { // a connection has some
		t.Errorf("%d runs leave %d goroutines", runs, more)
	}
}
