package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/cache"
)

// newConsole has a catalog of one model and asks nothing. It is noon on Friday, 27 November 2026.
func newConsole() *Console {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	return &Console{Config: Config{Now: func() time.Time { return now }}, catalog: &client.Catalog{Models: []client.Model{
		{Name: "agent_runs", Metrics: []client.Metric{{Name: "run_count", Type: "count"}},
			Dimensions: []client.Dimension{{Name: "day"}, {Name: "user_identifier"}}}}}}
}

// The days of a dashboard mean what the flags of runlens query mean, and replace those of its panels.
func TestDashboardsHaveDays(t *testing.T) {
	for days, want := range map[string]string{
		"":                                     "2026-11-25 to 2026-11-27",
		"last: 2d\n":                           "2026-11-26 to 2026-11-27",
		"end: 2026-03-01\n":                    "2026-01-31 to 2026-03-01", // 30 days
		"last: 2d\nend: 2026-03-01\n":          "2026-02-28 to 2026-03-01",
		"start: 2026-02-27\nend: 2026-03-01\n": "2026-02-27 to 2026-03-01",
		"start: 2026-11-20\n":                  "2026-11-20 to 2026-11-27",
	} {
		c := newConsole()
		d, err := c.parseDashboard("board.yaml", []byte(days+"panels: [{question: {metrics: [run_count], last: 3d}}]\n"))
		if err != nil {
			t.Errorf("%q: %v", days, err)
			continue
		}
		if span, err := d.Panels[0].look.Span(c.Now()); err != nil || span.String() != want {
			t.Errorf("%q: %s, %v, want %s", days, span, err, want)
		}
	}
}

// Dashboards are found in any folder, also in one whose name would be a pattern. Who has no home has those that were
// named, and not those of the folder that the console was started in.
func TestDashboardsOfTheHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home [1]*")
	if err := os.MkdirAll(filepath.Join(home, "dashboards"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	for _, name := range []string{"b.yaml", "a.yaml", "c.yml"} {
		board := []byte("panels: [{question: {metrics: [run_count]}}]\n")
		if err := os.WriteFile(filepath.Join("dashboards", name), board, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[profile.Folder]string{profile.Folder(home): "a b", profile.Nowhere: ""} {
		c := newConsole()
		c.Home = folder
		all, faults := c.dashboards()
		var titles []string
		for _, d := range all {
			titles = append(titles, strings.TrimSuffix(filepath.Base(d.file), ".yaml"))
		}
		if got := strings.Join(titles, " "); got != want || len(faults) > 0 {
			t.Errorf("%q has %q, want %q; %v", folder, got, want, faults)
		}
	}
}

// asking is newConsole with an API that has one row for every query.
func asking(t *testing.T) *Console {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q client.Query
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		page := client.Response{Range: client.ResponseRange{Start: q.Range.Start, End: q.Range.End},
			Rows: [][]client.Value{{}}}
		for _, name := range q.Dimensions {
			page.Columns = append(page.Columns, client.Column{Name: name, Type: client.TypeString, Member: name})
			page.Rows[0] = append(page.Rows[0], client.StringValue(q.Range.Start))
		}
		for _, name := range q.Metrics {
			page.Columns = append(page.Columns, client.Column{Name: name, Type: client.TypeNumber, Member: name})
			page.Rows[0] = append(page.Rows[0], client.Int64Value(1))
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(api.Close)
	to, err := client.New(client.Config{URL: api.URL, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	bare := newConsole()
	c := &Console{Config: bare.Config, catalog: bare.catalog, answers: cache.New[*answer](keptAnswers, keptFor),
		lastShown: cache.New[*shown](keptAnswers, keptFor), names: cache.New[string](keptNames, keptFor),
		asks: make(chan struct{}, atOnce)}
	c.Client, c.Home = to, profile.Folder(t.TempDir())
	return c
}

// A page names the days and the zone that all its panels have, or those of each.
func TestDashboardsNameTheirDays(t *testing.T) {
	c := asking(t)
	file := filepath.Join(t.TempDir(), "board.yaml")
	c.Dashboards = []string{file}
	const three, two = "25 Nov 2026 to 27 Nov 2026 in ", "26 Nov 2026 to 27 Nov 2026 in "
	for content, want := range map[string][]string{
		"last: 3d\npanels: [{question: {metrics: [run_count]}}, {question: {metrics: [run_count]}}]\n": {three + "UTC"},
		"panels: [{question: {metrics: [run_count], last: 3d}}, {question: {metrics: [run_count], last: 2d}}]\n": {
			three + "UTC", two + "UTC"},
		"last: 3d\npanels: [{question: {metrics: [run_count]}}, {question: {metrics: [run_count], timezone: Asia/Tokyo}}]": {
			three + "UTC", three + "Asia/Tokyo"},
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		c.dashboard(w, httptest.NewRequest("GET", "/"+dashboardAddress(file), nil))
		shown := abouts(w.Body.String())
		var page strings.Builder
		if err := c.Export(t.Context(), file, &page); err != nil {
			t.Fatal(err)
		}
		exported := abouts(page.String())
		const says = "Exported from runlens; every panel says as of when it is."
		wantShown, wantExported := []string{"All panels are about " + want[0] + "."}, []string{want[0] + ". " + says}
		if len(want) > 1 {
			wantShown = []string{"The panels are about several periods.", want[0] + ".", want[1] + "."}
			wantExported = []string{says, want[0] + ".", want[1] + "."}
		}
		if !slices.Equal(shown, wantShown) || !slices.Equal(exported, wantExported) {
			t.Errorf("%s\nshown %q\nexported %q", content, shown, exported)
		}
	}
}

// abouts are the paragraphs of a page that say what something is about.
func abouts(page string) (texts []string) {
	for _, part := range strings.Split(page, `<p class="about">`)[1:] {
		text, _, _ := strings.Cut(part, "</p>")
		if text != "Asking …" {
			texts = append(texts, text)
		}
	}
	return texts
}
