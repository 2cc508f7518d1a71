package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A day that was not over when it was counted stays open where the answer is shown on the next day.
func TestPeriodsAreOpenAsOfTheAnswer(t *testing.T) {
	day := func(text string) time.Time { return dayOf(t, text) }
	c := &Console{Config: Config{Now: func() time.Time { return day("2026-01-16").Add(10 * time.Minute) }}}
	q := report.Question{Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Timezone: "UTC",
		WeekStart: "monday"}
	span := report.Span{Start: day("2026-01-12"), End: day("2026-01-15")}
	counted := func(grain, compare, end string) *shown {
		q := q
		if q.Grain, q.Compare = grain, compare; grain != "" {
			q.Dimensions = nil
		}
		a := &answer{question: q, span: span, at: day("2026-01-15").Add(23 * time.Hour),
			columns: []report.Column{{Name: "day", Kind: report.Date, Member: "day"},
				{Name: "run_count", Kind: report.Count, Member: "run_count"}},
			rows: []report.Row{{client.StringValue("2026-01-12"), client.Int64Value(3)}}}
		a.facts.Range.End = end
		return &shown{look: look{Question: q, Chart: "line"}, span: span, totals: a, rows: a}
	}
	for _, want := range []struct{ grain, compare, end, open, lasts string }{
		{"", "", "2026-01-15", "[3]", "[2026-01-12 2026-01-13 2026-01-14 2026-01-15]"},
		{"week", "", "2026-01-15", "[0]", "[2026-01-15]"},
		{"week", "previous", "2026-01-14", "[0]", "[2026-01-14]"}, // the comparison leaves the 15th out
	} {
		drawn := c.charts(counted(want.grain, want.compare, want.end), "")[0]
		if open, lasts := fmt.Sprint(drawn.Open), fmt.Sprint(drawn.Lasts); open != want.open || lasts != want.lasts {
			t.Errorf("%+v: open are %s, the periods end on %s", want, open, lasts)
		}
	}
}
