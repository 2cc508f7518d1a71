package console

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/cmd/internal/report"
	"github.com/runlens/runlens/http/client"
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
		if got := c.bars(s, "")[0].Bars[0].Name; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
