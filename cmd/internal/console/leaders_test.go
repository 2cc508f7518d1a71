package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runlens/runlens/http/client/report"
)

// The first rows of a list are seen, those behind them are found by a search, and the last ones are not in the page.
func TestLeadersAreArranged(t *testing.T) {
	for by, want := range map[string]string{"value": "119 118 117 116 115 114 113 112", "change": "0 1 2 3 4 5 6 7",
		"lowest": "0 1 2 3 4 5 6 7"} {
		var v leadersView
		for i := range 120 {
			v.Rows = append(v.Rows, leaderRow{Name: fmt.Sprint(i), value: float64(i), Change: change{by: float64(119 - i)}})
		}
		v.arrange(by)
		var seen []string
		for _, r := range v.Rows {
			if !r.Hidden {
				seen = append(seen, r.Name)
			}
		}
		if got := strings.Join(seen, " "); got != want || len(v.Rows) != leadersKept || v.Hidden != 92 || v.Left != 20 {
			t.Errorf("%s are seen of %d, %d are hidden, %d are left", got, len(v.Rows), v.Hidden, v.Left)
		}
		if first := v.Rows[0]; first.Width != map[string]string{"119": "100.0%", "0": "0.0%"}[first.Name] {
			t.Errorf("the bar of %s is %s wide", first.Name, first.Width)
		}
	}
}

// A row without a value is the last one in both directions.
func TestLeadersWithoutAValue(t *testing.T) {
	for by, want := range map[string]string{"value": "b a none", "lowest": "a b none"} {
		v := leadersView{Rows: []leaderRow{{Name: "none", value: -1}, {Name: "a", value: 0.5}, {Name: "b", value: 0.9}}}
		v.arrange(by)
		if got := v.Rows[0].Name + " " + v.Rows[1].Name + " " + v.Rows[2].Name; got != want {
			t.Errorf("by %s they are %s, want %s", by, got, want)
		}
	}
}

// A rate of 0 is news, and a count of 0 only where it was another one.
func TestLeadersAreListed(t *testing.T) {
	for _, c := range []struct {
		row  leaderRow
		kind report.Kind
		want bool
	}{
		{leaderRow{value: 0}, report.Count, false}, {leaderRow{value: 0}, report.Number, true},
		{leaderRow{value: -1}, report.Number, false}, {leaderRow{value: 2}, report.Count, true},
		{leaderRow{value: 0, Change: change{by: 3}}, report.Count, true},
	} {
		if got := c.row.listed(c.kind); got != c.want {
			t.Errorf("%v of kind %v: %t", c.row, c.kind, got)
		}
	}
}

// What is not drawn is a line of its own: the days less the drawn groups. Without anything left there is none.
func TestOthers(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	s := &shown{days: &answer{columns: []report.Column{{Name: "day", Kind: report.Date, Member: "day"},
		{Name: "run_count", Kind: report.Count, Member: "run_count"}}}}
	for _, text := range []string{`["2026-01-05", 10]`, `["2026-01-06", 3]`} {
		var row report.Row
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		s.days.rows = append(s.days.rows, row)
	}
	at := map[string]int{"2026-01-05": 0, "2026-01-06": 1}
	for want, drawn := range map[string][]series{
		"[2,1]": {{Name: "a", Values: []*float64{f(5), f(2)}}, {Name: "b", Values: []*float64{f(3), nil}},
			{Name: "a", Before: true, Values: []*float64{f(9), f(9)}}},
		"null": {{Name: "a", Values: []*float64{f(10), f(3)}}},
	} {
		c := chart{Metric: "run_count", Days: []int64{0, 86400}, Series: drawn}
		c.others(s, at)
		var left []*float64
		if last := c.Series[len(c.Series)-1]; last.Others {
			left = last.Values
		}
		if got, _ := json.Marshal(left); string(got) != want {
			t.Errorf("others have %s, want %s", got, want)
		}
	}
}
