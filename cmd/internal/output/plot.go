package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

const (
	// maxPlotted rows fit in memory and can be read by a person.
	maxPlotted = 20_000
	// plotWidth is that of a plot where there is no terminal.
	plotWidth = 80
)

// A plot draws each metric: lines over days, weeks or months, and bars over anything else.
type plot struct {
	out     io.Writer
	options Options
	columns []report.Column
	rows    []report.Row
}

func (p *plot) Head(columns []report.Column) error {
	p.columns = printable(columns)
	return nil
}

func (p *plot) Row(row report.Row) error {
	if len(p.rows) == maxPlotted {
		return fmt.Errorf("a plot has at most %d rows: set --limit, fewer dimensions or a filter, "+
			"or write another format", maxPlotted)
	}
	row = slices.Clone(row)
	for i, v := range row {
		if !v.IsNumber() && !v.IsNull() {
			row[i] = client.StringValue(Printable(v.String()))
		}
	}
	p.rows = append(p.rows, row)
	return nil
}

func (p *plot) End(report.Facts) error {
	if len(p.rows) == 0 {
		_, err := fmt.Fprintln(p.out, "no rows")
		return err
	}
	if p.options.Width == 0 {
		p.options.Width = plotWidth
	}
	var text strings.Builder
	date := slices.IndexFunc(p.columns, func(c report.Column) bool { return c.Kind == report.Date })
	for i, c := range p.columns {
		if !c.Numeric() {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		if days := p.days(date); len(days) > 1 {
			metrics := []int{i}
			if i > 0 && c.Name == p.columns[i-1].Name+report.EndPrevious {
				continue // in the chart of the metric itself
			}
			if i+1 < len(p.columns) && p.columns[i+1].Name == c.Name+report.EndPrevious {
				metrics = append(metrics, i+1)
			}
			p.chart(&text, metrics, date, days)
		} else {
			p.bars(&text, i)
		}
	}
	_, err := io.WriteString(Controls(p.out), text.String()) // colors
	return err
}

// days are the different ones of all rows, in the order of time; none where no column is a date.
func (p *plot) days(date int) (days []string) {
	if date < 0 {
		return nil
	}
	seen := make(map[string]bool)
	for _, row := range p.rows {
		if day := row[date].String(); !seen[day] {
			seen[day] = true
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return everyPeriod(days, p.columns[date].Name)
}

// everyPeriod adds the days, weeks or months between: without data there is a gap in the line, not a shorter axis.
func everyPeriod(days []string, unit string) (every []string) {
	first, err := time.Parse(time.DateOnly, days[0])
	step, known := map[string][2]int{"day": {0, 1}, "week": {0, 7}, "month": {1, 0}}[unit] // months and days
	if err != nil || !known {
		return days
	}
	for day := first; len(every) == 0 || every[len(every)-1] < days[len(days)-1]; day = day.AddDate(0, step[0], step[1]) {
		every = append(every, day.Format(time.DateOnly))
	}
	return every
}

// name is what identifies a row, without one of its columns.
func (p *plot) name(row report.Row, but int) string {
	var names []string
	for i, c := range p.columns {
		if i != but && !c.Numeric() && !(row[i].IsNull() && c.Member != c.Name) {
			names = append(names, shown(c, row[i]))
		}
	}
	return strings.Join(names, " ")
}
