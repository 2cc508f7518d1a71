package console

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/cache"
)

// The name of a bar has room left of it, where an ideograph takes twice as much as a letter.
func TestNamesOfBarsFit(t *testing.T) {
	c := &Console{names: cache.New[string](keptNames, keptFor)}
	for name, want := range map[string]string{
		"desk":                  "desk",
		strings.Repeat("m", 30): strings.Repeat("m", 23) + "…",
		strings.Repeat("日", 30): strings.Repeat("日", 11) + "…",
	} {
		s := &shown{look: look{Question: report.Question{Metrics: []string{"run_count"}, Dimensions: []string{"source"}}},
			rows: &answer{columns: []report.Column{{Name: "source", Member: "source"},
				{Name: "run_count", Kind: report.Count, Member: "run_count"}},
				rows: []report.Row{{text(name), client.Int64Value(1)}}}}
		b := c.bars(s, "")[0]
		if got := b.Bars[0].Name; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		// Two names that are cut off alike are told apart by who points at them or hears them.
		var drawn strings.Builder
		if err := templates.ExecuteTemplate(&drawn, "bars", b); err != nil {
			t.Fatal(err)
		}
		for _, whole := range []string{"<title>" + name + ": 1</title>", `aria-label="` + name + `: 1. Filter by it."`} {
			if !strings.Contains(drawn.String(), whole) {
				t.Errorf("the drawing lacks %s", whole)
			}
		}
	}
}

// A picture has its sentence alone: it says so where some groups are not drawn.
func TestSentencesSayWhatIsNotDrawn(t *testing.T) {
	c := &Console{names: cache.New[string](keptNames, keptFor)}
	l := look{Question: report.Question{Metrics: []string{"run_count"}, Dimensions: []string{"source"}, Timezone: "UTC"}}
	for count, want := range map[int]string{
		maxBars:     "Runs for each source on 1 Jan 0001 in UTC.",
		maxBars + 1: "Runs for each source on 1 Jan 0001 in UTC, the first 25 groups.",
	} {
		a := &answer{question: l.Question, columns: []report.Column{{Name: "source", Member: "source"},
			{Name: "run_count", Kind: report.Count, Member: "run_count"}}}
		for n := range count {
			a.rows = append(a.rows, report.Row{text(string(rune('a' + n))), client.Int64Value(1)})
		}
		if got := c.bars(&shown{look: l, rows: a}, "")[0].Sentence; got != want {
			t.Errorf("%d bars: %s", count, got)
		}
		var d drawing
		if d.keep(a, maxBars); (d.only != "") != (count > maxBars) {
			t.Errorf("of %d groups the drawn ones are %q", count, d.only)
		}
	}
}
