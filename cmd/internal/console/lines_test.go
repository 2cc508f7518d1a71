package console

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The marks of what is counted are whole numbers, and a month is named by itself.
func TestMarksOfLines(t *testing.T) {
	for _, c := range []struct {
		metric string
		most   float64
		want   string
	}{
		{"run_count", 1, "0 1"}, {"run_count", 3, "0 1 2 3"}, {"run_count", 12, "0 3 6 9 12"},
		{"run_count", 40, "0 10 20 30 40"}, {"run_success_rate", 1, "0% 20% 40% 60% 80% 100%"},
		{"run_count", 3_400_000, "0 1\u202f000\u202f000 2\u202f000\u202f000 3\u202f000\u202f000 4\u202f000\u202f000"},
		{"run_success_rate", 0.002, "0% 0.05% 0.1% 0.15% 0.2%"},
	} {
		drawn := chart{Metric: c.metric, Rate: isRate(c.metric), Unit: "month",
			Series: []series{{Values: []*float64{&c.most}}},
			Days:   []int64{time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).Unix()}}
		d := drawLines(drawn)
		var marks []string
		for _, tick := range d.Ticks {
			marks = append(marks, tick.Text)
		}
		if got := strings.Join(marks, " "); got != c.want {
			t.Errorf("%s up to %v has the marks %s, want %s", c.metric, c.most, got, c.want)
		}
		if !slices.ContainsFunc(d.Days, func(day svgText) bool { return day.Text == "Sep 2026" }) {
			t.Errorf("the months are %v", d.Days)
		}
	}
}
