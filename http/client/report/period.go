package report

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A Span is whole days, both inclusive, each as its midnight in UTC.
type Span struct{ Start, End time.Time }

func (s Span) in(timezone string) client.Range {
	return client.Range{Start: s.Start.Format(time.DateOnly), End: s.End.Format(time.DateOnly), Timezone: timezone}
}

// Days is how many there are.
func (s Span) Days() int { return int(s.End.Sub(s.Start)/(24*time.Hour)) + 1 }

func (s Span) String() string {
	if s.Start.Equal(s.End) {
		return s.Start.Format(time.DateOnly)
	}
	return s.Start.Format(time.DateOnly) + " to " + s.End.Format(time.DateOnly)
}

var lastForm = regexp.MustCompile(`^([1-9][0-9]{0,3})(d|w|mo)$`)

// Span is the period that the question names, seen at now.
func (q Question) Span(now time.Time) (Span, error) {
	today := TodayIn(q.Timezone, now)
	named := 0
	for _, given := range []bool{q.Today, q.Yesterday, q.Last != "", q.Start != ""} {
		if given {
			named++
		}
	}
	if named > 1 || q.End != "" && (q.Today || q.Yesterday) {
		return Span{}, errors.New("--start, --last, --today and --yesterday exclude each other, and --end the latter two")
	}
	span := Span{today, today}
	var err error
	if q.End != "" {
		if span.End, err = parseDay("--end", q.End); err != nil {
			return span, err
		}
	}
	switch {
	case q.Today:
	case q.Yesterday:
		span.Start, span.End = today.AddDate(0, 0, -1), today.AddDate(0, 0, -1)
	case q.Start != "":
		span.Start, err = parseDay("--start", q.Start)
	case q.Last != "":
		span.Start, err = q.lastStart(span.End)
	default:
		span.Start = span.End.AddDate(0, 0, -29)
	}
	switch {
	case err != nil:
		return span, err
	case span.Start.After(span.End):
		return span, fmt.Errorf("the range starts on %s, after its end on %s",
			span.Start.Format(time.DateOnly), span.End.Format(time.DateOnly))
	case span.Start.Year() < 1:
		return span, errors.New("the range starts before the year 1")
	}
	return span, nil
}

func (q Question) lastStart(end time.Time) (time.Time, error) {
	parts := lastForm.FindStringSubmatch(q.Last)
	if parts == nil {
		return end, fmt.Errorf("--last %s must be days, weeks or months such as 30d, 12w or 13mo", q.Last)
	}
	count, _ := strconv.Atoi(parts[1]) // at most four digits
	switch parts[2] {
	case "w":
		return weekOf(end, q.weekStart()).AddDate(0, 0, -7*(count-1)), nil
	case "mo":
		return monthOf(end).AddDate(0, -(count - 1), 0), nil
	}
	return end.AddDate(0, 0, -(count - 1)), nil
}

func parseDay(flag, text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 1 {
		return day, fmt.Errorf("%s %s is no day such as 2026-01-31", flag, text)
	}
	return day, nil
}

// TodayIn is the local day of now, by the tz data of this machine. In a zone that is unknown, and that the server
// refuses, it is UTC's.
func TodayIn(timezone string, now time.Time) time.Time {
	zone, err := time.LoadLocation(timezone)
	if err != nil {
		zone = time.UTC
	}
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
