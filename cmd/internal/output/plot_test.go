package output

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// Bars are to the nearest eighth of a block; those below 0 are on the other side of the axis.
func TestBars(t *testing.T) {
	some := []report.Column{columns[1], {Name: "run_count_difference", Kind: report.Count}}
	// 30 columns, less 3 of the names, 2 of the values and 3 between: 22 for 16.
	want := "run_count_difference\n" +
		"abc  " + strings.Repeat("█", 22) + " 16\n" +
		"-    " + strings.Repeat("█", 11) + " 8\n" +
		"d    █▍ 1\n" + // 22/16 is 1 and 3/8
		"e     0\n"
	if got := written(t, "plot", Options{Width: 30}, some, `["abc",16]`, `[null,8]`, `["d",1]`, `["e",0]`); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// 23 columns for 23, of which 3 are below 0.
	want = "run_count_difference\n" +
		"a  ███ -3\n" +
		"b     " + strings.Repeat("█", 20) + " 20\n"
	if got := written(t, "plot", Options{Width: 29}, some, `["a",-3]`, `["b",20]`); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := written(t, "plot", Options{}, some); got != "no rows\n" {
		t.Errorf("nothing is drawn as %q", got)
	}
}

// A chart of days has an axis that begins at 0 and ends at the greatest value, and passes through every value.
func TestLines(t *testing.T) {
	some := []report.Column{columns[0], columns[3]}
	got := written(t, "plot", Options{Width: 40}, some, `["2026-01-01",12]`, `["2026-01-02",0]`, `["2026-01-04",6]`)
	lines := strings.Split(got, "\n")
	if lines[0] != "run_count" || !strings.HasPrefix(lines[1], " 12 ┼") || !strings.HasPrefix(lines[13], "  0 ┤") ||
		!strings.HasPrefix(lines[7], "  6 ┤") {
		t.Errorf("%s", got)
	}
	if axis := lines[len(lines)-2]; !strings.Contains(axis, "2026-01-01") || !strings.Contains(axis, "2026-01-04") {
		t.Errorf("the days are %q", axis)
	}
}

// A year does not fit one chart: it goes on in further charts, so that a single high day is seen wherever it is.
func TestEveryDayIsDrawn(t *testing.T) {
	some := []report.Column{columns[0], columns[3]}
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for high := range 366 {
		var rows []string
		for day := range 366 {
			count := 1
			if day == high {
				count = 1200
			}
			rows = append(rows, fmt.Sprintf(`["%s",%d]`, first.AddDate(0, 0, day).Format(time.DateOnly), count))
		}
		got := written(t, "plot", Options{Width: 60}, some, rows...)
		top := 0
		for line := range strings.Lines(got) {
			if _, drawn, ok := strings.Cut(line, "1200 "); ok && strings.ContainsAny(drawn, "╭╮─┼") {
				top++
			}
		}
		if top == 0 {
			t.Fatalf("day %d is not seen:\n%s", high, got)
		}
	}
}

// Groups beyond those that fit a chart are in the next one; comparisons share a chart.
func TestSeries(t *testing.T) {
	some := []report.Column{columns[0], columns[1], columns[3]}
	var rows []string
	for group := range 14 {
		rows = append(rows, fmt.Sprintf(`["2026-01-01","user-%d",%d]`, group, group),
			fmt.Sprintf(`["2026-01-02","user-%d",%d]`, group, group+1))
	}
	got := written(t, "plot", Options{Width: 60}, some, rows...)
	for group := range 14 {
		if !strings.Contains(got, fmt.Sprintf(" user-%d\n", group)) {
			t.Errorf("user-%d is missing", group)
		}
	}
	if strings.Count(got, "run_count\n") != 3 {
		t.Errorf("14 groups are not in 3 charts:\n%s", got)
	}
	got = written(t, "plot", Options{Width: 60}, some, `["2026-01-01","-",3]`, `["2026-01-01",null,10]`,
		`["2026-01-02","-",3]`, `["2026-01-02",null,10]`)
	if strings.Count(got, " -\n") != 2 {
		t.Errorf("groups that read alike are one:\n%s", got)
	}
	compared := []report.Column{columns[0], columns[3], {Name: "run_count_previous", Kind: report.Count},
		{Name: "run_count_difference", Kind: report.Count}}
	got = written(t, "plot", Options{Width: 60, Color: true}, compared, `["2026-01-01",1,2,-1]`,
		`["2026-01-02",1,null,null]`)
	// The name stands above the one chart and in its legend.
	if strings.Count(got, "run_count\n") != 2 || !strings.Contains(got, " previous\n") ||
		!strings.Contains(got, "run_count_difference\n") || !strings.Contains(got, "\x1b[") {
		t.Errorf("%s", got)
	}
	var out bytes.Buffer
	p := &plot{out: &out, rows: make([]report.Row, maxPlotted)}
	if err := p.Row(report.Row{client.Int64Value(1)}); err == nil {
		t.Error("a plot without end")
	}
}

// A week or a month without rows is a gap of the line and has its place on the axis, as a day has.
func TestWeeksAndMonthsWithoutRowsAreGaps(t *testing.T) {
	for unit, days := range map[string][]string{
		"day":   {"2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"},
		"week":  {"2025-12-29", "2026-01-05", "2026-01-12", "2026-01-26"},
		"month": {"2025-11-01", "2025-12-01", "2026-01-01", "2026-03-01"},
	} {
		some := []report.Column{{Name: unit, Kind: report.Date}, columns[3]}
		var rows []string
		for _, day := range days {
			rows = append(rows, fmt.Sprintf(`["%s",1]`, day))
		}
		got := written(t, "plot", Options{Width: 40}, some, rows...)
		line := strings.TrimRight(strings.Split(got, "\n")[1], " ")
		if line != " 1.00 ┼──────────────╴            ╶" {
			t.Errorf("%ss are drawn as %q", unit, line)
		}
	}
}
