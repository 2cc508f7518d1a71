package console

import (
	"math"
	"slices"
	"strings"

	"github.com/runlens/runlens/http/client/report"
)

// A change is how a value differs from the earlier one. It is zero where nothing is compared.
type change struct {
	Arrow   string // ▲ or ▼; empty for no change
	Text    string // such as −6.0%
	Before  string // the earlier value
	Class   string // better, worse or same
	Meaning string // the class in words, for who can't see colors
	by      float64
}

// changeOf reads the columns of a comparison behind a metric's. Counts change in percent, rates in points.
func changeOf(columns []report.Column, row report.Row, at int) change {
	name := columns[at].Name
	if at+3 >= len(columns) || columns[at+1].Name != name+report.EndPrevious || row[at+1].IsNull() {
		return change{}
	}
	c := change{Before: shownValue(columns[at+1], row[at+1]), Class: "same", Meaning: "as before"}
	difference := number(row[at+2])
	if difference == nil {
		return c
	}
	c.by = math.Abs(*difference)
	shown := at + 3
	if isRate(name) || row[shown].IsNull() {
		shown = at + 2
	}
	c.Text = shownValue(columns[shown], row[shown])
	if *difference == 0 {
		c.Text = "±0"
		return c
	}
	if rest := strings.TrimLeft(c.Text, "+−"); strings.HasPrefix(rest, "0.0") {
		c.Text, c.Meaning = "±"+rest, "almost as before"
		return c
	}
	up := goodness(name)
	if c.Arrow = "▲"; *difference < 0 {
		c.Arrow, up = "▼", -up
	}
	switch {
	case up > 0:
		c.Class, c.Meaning = "better", "better"
	case up < 0:
		c.Class, c.Meaning = "worse", "worse"
	default:
		c.Meaning = "neither better nor worse"
	}
	return c
}

// only is the answer with some of its metrics, and the columns that compare them.
func (a *answer) only(metrics []string) *answer {
	var kept []int
	for i, column := range a.columns {
		metric, _ := report.PartName(column.Name)
		if !column.Numeric() || slices.Contains(metrics, metric) {
			kept = append(kept, i)
		}
	}
	part := *a
	part.question.Metrics, part.columns, part.rows = metrics, nil, nil
	for _, i := range kept {
		part.columns = append(part.columns, a.columns[i])
	}
	for _, row := range a.rows {
		cells := make(report.Row, len(kept))
		for n, i := range kept {
			cells[n] = row[i]
		}
		part.rows = append(part.rows, cells)
	}
	return &part
}
