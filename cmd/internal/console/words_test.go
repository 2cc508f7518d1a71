package console

import (
	"testing"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A chart in words has its numbers as the table has them: no exponents, and no rate of nearly all as all.
func TestChartsInWords(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for want, c := range map[string]chart{
		"lowest 3\u202f000\u202f000 on 5 Jan 2026, highest 1\u202f234\u202f567\u202f890 on 6 Jan 2026.": {Metric: "run_count",
			Series: []series{{Values: []*float64{f(3_000_000), f(1_234_567_890)}}}},
		"lowest 0.04% on 5 Jan 2026, highest 99.96% on 6 Jan 2026.": {Metric: "run_success_rate",
			Series: []series{{Values: []*float64{f(0.0004), f(0.9996)}}}},
	} {
		c.Firsts = []string{"2026-01-05", "2026-01-06"}
		if got := c.inWords(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		for _, v := range c.Series[0].Values {
			column := report.Column{Name: c.Metric, Kind: report.Number}
			digits := client.Float64Value(*v)
			if !isRate(c.Metric) {
				digits = client.Int64Value(int64(*v))
			}
			if in, cell := numberText(c.Metric, *v), shownValue(column, digits); in != cell {
				t.Errorf("%v is %s in a chart and %s in a table", *v, in, cell)
			}
		}
	}
}

// Runs are counted, and a rate is high or low.
func TestMost(t *testing.T) {
	for want, got := range map[string]string{
		"most runs": most("run_count", false), "fewest people": most("unique_initiator_count", true),
		"highest success rate": most("run_success_rate", false), "lowest success rate": most("run_success_rate", true),
	} {
		if got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
