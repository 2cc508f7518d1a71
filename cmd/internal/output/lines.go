package output

import (
	"fmt"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"

	"github.com/runlens/runlens/http/client/report"
)

const (
	chartHeight = 12
	// perChart is how many lines a reader can distinguish; further ones are in further charts.
	perChart = 6
	// fewestColumns is the narrowest that a chart can be.
	fewestColumns = 20
	// axisColumns are those beside an axis's label.
	axisColumns = 6
)

var (
	lineColors = []asciigraph.AnsiColor{
		asciigraph.Blue, asciigraph.Red, asciigraph.Green, asciigraph.Orange, asciigraph.Purple, asciigraph.Cyan,
	}
	lineMarks = []string{"*", "o", "x", "+", "#", "@"}
)

// A series is the values of one group; NaN where it has none.
type series struct {
	name   string
	values []float64
}

// GroupOf is the same for rows of one group only, whatever their days, and however its values read.
func GroupOf(columns []report.Column, row report.Row) string {
	var key strings.Builder
	for i, column := range columns {
		if column.Name == column.Member && column.Kind == report.Text {
			fmt.Fprintf(&key, "%t %q ", row[i].IsNull(), row[i].String())
		}
	}
	return key.String()
}

// series of the metrics of a chart over the days: of one, or of one and its earlier values.
func (p *plot) series(metrics []int, date int, days []string) (all []*series) {
	at := make(map[string]int, len(days))
	for i, day := range days {
		at[day] = i
	}
	type line struct {
		metric int
		group  string
	}
	lines := make(map[line]*series)
	for _, row := range p.rows {
		group := GroupOf(p.columns, row)
		for n, metric := range metrics {
			name := p.name(row, date)
			if n > 0 {
				name = strings.TrimSpace(name + " previous")
			} else if name == "" && len(metrics) > 1 {
				name = p.columns[metric].Name
			}
			s := lines[line{metric, group}]
			if s == nil {
				s = &series{name, make([]float64, len(days))}
				for i := range s.values {
					s.values[i] = math.NaN()
				}
				lines[line{metric, group}], all = s, append(all, s)
			}
			if f, ok := row[metric].Float64(); ok {
				s.values[at[row[date].String()]] = f
			}
		}
	}
	return all
}

// chart draws metrics as lines over the days on one scale, perChart groups at a time. Every day has a column of its own
// at least: days that do not fit go on in the next chart.
func (p *plot) chart(text *strings.Builder, metrics []int, date int, days []string) {
	all := p.series(metrics, date, days)
	low, high := bounds(all)
	c := p.columns[metrics[0]]
	if math.IsInf(low, 0) {
		fmt.Fprintf(text, "%s: no values\n", c.Name)
		return
	}
	label := func(v float64) string { return axisLabel(c, v, high-low) }
	columns := max(p.options.Width-max(width(label(low)), width(label(high)))-axisColumns, fewestColumns)
	charts := (len(days) + columns - 1) / columns
	perDays := (len(days) + charts - 1) / charts
	for first := 0; first < len(all); first += perChart {
		part := all[first:min(first+perChart, len(all))]
		for from := 0; from < len(days); from += perDays {
			to := min(from+perDays, len(days))
			fmt.Fprintln(text, c.Name)
			text.WriteString(p.drawn(part, days, from, to, columns,
				asciigraph.LowerBound(low), asciigraph.UpperBound(high), asciigraph.YAxisValueFormatter(label)))
			text.WriteString("\n")
		}
		if part[0].name == "" {
			continue
		}
		for i, s := range part {
			fmt.Fprintf(text, "  %s %s\n", p.mark(i, len(part)), s.name)
		}
	}
}

// mark is how the line of a chart differs from the others.
func (p *plot) mark(i, lines int) string {
	switch {
	case p.options.Color:
		return lineColors[i].String() + "■" + asciigraph.Default.String()
	case lines == 1:
		return "─"
	}
	return lineMarks[i]
}

// drawn is the lines of a part over the days from (inclusive) to (exclusive).
func (p *plot) drawn(part []*series, days []string, from, to, columns int, options ...asciigraph.Option) string {
	days = days[from:to]
	// So many columns for a day that the line passes through each of its values.
	stretch := max((columns-1)/max(len(days)-1, 1), 1)
	options = append(options,
		asciigraph.Height(chartHeight), asciigraph.Width((len(days)-1)*stretch+1),
		asciigraph.XAxisRange(0, float64(len(days)-1)),
		asciigraph.XAxisTickCount(max(min(len(days), columns/14), 2)),
		asciigraph.XAxisValueFormatter(func(v float64) string {
			return days[min(max(int(math.Round(v)), 0), len(days)-1)]
		}))
	data := make([][]float64, len(part))
	var marks []asciigraph.CharSet
	for i, s := range part {
		data[i] = s.values[from:to]
		marks = append(marks, asciigraph.CreateCharSet(lineMarks[i]))
	}
	switch {
	case p.options.Color:
		options = append(options, asciigraph.SeriesColors(lineColors[:len(part)]...))
	case len(part) > 1:
		options = append(options, asciigraph.SeriesChars(marks...))
	}
	return asciigraph.PlotMany(data, options...)
}

// bounds are 0 and the greatest value, or the least one if it is below 0.
func bounds(all []*series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, v := range s.values {
			if !math.IsNaN(v) {
				low, high = min(low, v, 0), max(high, v, 0)
			}
		}
	}
	if low == high {
		high = low + 1
	}
	return low, high
}

// axisLabel has as many digits as make the lines of an axis differ.
func axisLabel(c report.Column, v, span float64) string {
	digits := max(int(math.Ceil(-math.Log10(span/chartHeight))), 0)
	unit := ""
	if c.Kind == report.Percent {
		unit = "%"
	}
	return fmt.Sprintf("%.*f%s", min(digits, 6), v, unit)
}
