package console

import (
	"encoding/json"
	"testing"

	"github.com/runlens/runlens/http/client/report"
)

// More of what is bad is worse. Counts change in percent, rates in points, and from nothing by a number.
func TestChanges(t *testing.T) {
	for _, c := range []struct{ metric, row, want string }{
		{"run_count", `[94, 100, -6, -6]`, "▼ −6.0% worse was 100"},
		{"failed_run_count", `[3, 2, 1, 50]`, "▲ +50.0% worse was 2"},
		{"failed_attributed_run_count", `[2, 3, -1, -33.33]`, "▼ −33.3% better was 3"},
		{"active_run_count", `[2, 0, 2, null]`, "▲ +2 same was 0"},
		{"run_success_rate", `[0.9, 0.85, 0.05, 5.88]`, "▲ +5.0 points better was 85%"},
		{"run_count", `[5, 5, 0, 0]`, " ±0 same was 5"},
		{"run_success_rate", `[0.5012, 0.5014, -0.0002, -0.04]`, " ±0.0 points same was 50.1%"},
		{"run_count", `[10001, 10000, 1, 0.01]`, " ±0.0% same was 10\u202f000"},
		{"run_success_rate", `[null, 0.85, null, null]`, "  same was 85%"},
		{"run_count", `[5, null, null, null]`, "   was "}, // today
	} {
		kind := report.Count
		if isRate(c.metric) {
			kind = report.Number
		}
		columns := []report.Column{{Name: c.metric, Kind: kind, Member: c.metric},
			{Name: c.metric + "_previous", Kind: kind, Member: c.metric},
			{Name: c.metric + "_difference", Kind: kind}, {Name: c.metric + "_percent", Kind: report.Percent}}
		var row report.Row
		if err := json.Unmarshal([]byte(c.row), &row); err != nil {
			t.Fatal(err)
		}
		got := changeOf(columns, row, 0)
		if text := got.Arrow + " " + got.Text + " " + got.Class + " was " + got.Before; text != c.want {
			t.Errorf("%s %s: %q, want %q", c.metric, c.row, text, c.want)
		}
		if alone := changeOf(columns[:1], row[:1], 0); alone != (change{}) {
			t.Errorf("%s alone: %v", c.metric, alone)
		}
	}
}
