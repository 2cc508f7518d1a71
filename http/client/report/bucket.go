package report

import (
	"slices"
	"time"
)

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func (q Question) weekStart() time.Weekday {
	return time.Weekday(max(slices.Index(weekdays, q.WeekStart), 0))
}

// A Period is a day, or the part of a week or month that a span covers.
type Period struct {
	Whole Span // the day, week or month
	Span       // what is covered of it
}

// Periods cuts the span into weeks or months, by --grain, or into days. The first and the last may be parts.
func (q Question) Periods(span Span) (cut []Period) {
	for day := span.Start; !day.After(span.End); {
		first, next := day, day.AddDate(0, 0, 1)
		switch q.Grain {
		case "week":
			first = weekOf(day, q.weekStart())
			next = first.AddDate(0, 0, 7)
		case "month":
			first = monthOf(day)
			next = first.AddDate(0, 1, 0)
		}
		whole := Span{first, next.AddDate(0, 0, -1)}
		end := whole.End
		if end.After(span.End) {
			end = span.End
		}
		cut = append(cut, Period{whole, Span{day, end}})
		day = next
	}
	return cut
}

// weekOf is the first day of the week that holds day.
func weekOf(day time.Time, first time.Weekday) time.Time {
	return day.AddDate(0, 0, -(int(day.Weekday())-int(first)+7)%7)
}

func monthOf(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// A shift leads from complete days to those that they are compared with, and from a day of the latter back.
type shift struct {
	now     Span // ends before it starts where no day of the span is complete
	earlier Span // those days
	open    bool // the span has days that are not over
	// later is the day of the span that an earlier day is compared with; ok is false for one that has none, because of
	// a 29th of February.
	later func(time.Time) (day time.Time, ok bool)
}

// complete reports whether there is a day to compare.
func (s shift) complete() bool { return !s.now.End.Before(s.now.Start) }

// compared is the period of --compare. Without --grain, previous is as many days right before; with --weekdays it is
// whole weeks before, and a year is 52 weeks. A week is compared with the same weekdays of the week before or of 52
// weeks before, a month with the same days of the month before or of that month a year before; a last day of a month
// stands for the last day of the other. From today on days are not over: neither they nor the days that they would be
// compared with count, so that every other day is compared with the same one all day long.
func (q Question) compared(span Span, today time.Time) shift {
	days, s := 0, shift{now: span, open: !span.End.Before(today)}
	if s.open {
		s.now.End = today.AddDate(0, 0, -1)
	}
	switch {
	case q.Grain == "month" && q.Compare == "previous":
		s.earlier = Span{addMonths(s.now.Start, -1), lastToLast(s.now.End, -1)}
		return s
	case q.Grain == "month":
		s.earlier = Span{addMonths(s.now.Start, -12), lastToLast(s.now.End, -12)}
		return s
	case q.Grain == "week" && q.Compare == "previous":
		days = 7
	case q.Grain == "week" || q.Weekdays && q.Compare == "year":
		days = 52 * 7
	case q.Weekdays:
		days = (span.Days() + 6) / 7 * 7
	case q.Compare == "previous":
		days = span.Days()
	default:
		s.earlier = Span{addMonths(s.now.Start, -12), addMonths(s.now.End, -12)}
		s.later = func(day time.Time) (time.Time, bool) {
			later := addMonths(day, 12)
			return later, later.Day() == day.Day() && !later.Before(span.Start)
		}
		return s
	}
	s.earlier = Span{s.now.Start.AddDate(0, 0, -days), s.now.End.AddDate(0, 0, -days)}
	s.later = func(day time.Time) (time.Time, bool) { return day.AddDate(0, 0, days), true }
	return s
}

// addMonths keeps the day of the month, or takes the last one where that month is shorter.
func addMonths(day time.Time, months int) time.Time {
	first := monthOf(day).AddDate(0, months, 0)
	last := first.AddDate(0, 1, -1)
	return first.AddDate(0, 0, min(day.Day(), last.Day())-1)
}

// lastToLast is addMonths that leads from a last day of a month to the last day of the other.
func lastToLast(day time.Time, months int) time.Time {
	if day.AddDate(0, 0, 1).Day() == 1 {
		return monthOf(day).AddDate(0, months+1, -1)
	}
	return addMonths(day, months)
}
