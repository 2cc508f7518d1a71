package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client/report"
)

// A spark is a small line of a metric by day, sparkWidth by sparkHeight. Today's part is dashed.
type spark struct{ Whole, Open string } // points of lines; empty for none

const (
	sparkWidth  = 100.0
	sparkHeight = 28.0
)

// spark draws the values of the days. A count without a row is 0; a rate without one has a gap, which is bridged.
func (c *Console) spark(s *shown, column report.Column) (line spark) {
	at := slices.IndexFunc(s.days.columns, func(c report.Column) bool { return c.Name == column.Name })
	day := slices.IndexFunc(s.days.columns, func(c report.Column) bool { return c.Kind == report.Date })
	if at < 0 || day < 0 || s.span.Days() < 2 {
		return line
	}
	today := s.today()
	values, most := make(map[string]float64), 0.0
	for _, row := range s.days.rows {
		if f := number(row[at]); f != nil {
			values[row[day].String()] = *f
			most = max(most, *f)
		}
	}
	if most == 0 {
		return line
	}
	var whole, open []string
	for i, period := range (report.Question{}).Periods(s.span) {
		f, found := values[period.Start.Format(time.DateOnly)]
		if period.Start.After(today) {
			break
		}
		if !found && isRate(column.Name) {
			continue
		}
		point := fmt.Sprintf("%.1f,%.1f", sparkWidth*float64(i)/float64(s.span.Days()-1),
			sparkHeight-1-(sparkHeight-2)*f/most)
		if period.Start.Equal(today) {
			if open = []string{point}; len(whole) > 0 {
				open = []string{whole[len(whole)-1], point}
			}
			break
		}
		whole = append(whole, point)
	}
	return spark{strings.Join(whole, " "), strings.Join(open, " ")}
}
