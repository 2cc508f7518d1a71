package console

import (
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
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
