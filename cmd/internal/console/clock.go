package console

import (
	"fmt"
	"time"

	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/daterange"
)

// hours are those of whole days in a zone, by its clock changes; 0 for a day that the zone skipped.
func hours(span report.Span, zone string) float64 {
	r, err := daterange.Parse(span.Start.Format(time.DateOnly), span.End.Format(time.DateOnly), zone)
	if err != nil {
		return float64(24 * span.Days())
	}
	return r.EndUTC.Sub(r.StartUTC).Hours()
}

// clockChanges says which days of a span are shorter or longer than others: their counts are too.
func clockChanges(span report.Span, zone string) (notes []string) {
	for _, p := range (report.Question{}).Periods(span) {
		switch h := hours(p.Span, zone); {
		case h == 0:
			notes = append(notes, fmt.Sprintf("%s was skipped in %s: it has no hours.", p.Span, zone))
		case h != 24:
			notes = append(notes, fmt.Sprintf("%s has %g hours in %s: its clocks change.", p.Span, h, zone))
		}
	}
	return notes
}
