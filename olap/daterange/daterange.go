// Package daterange turns local calendar days in a canonical IANA zone into half-open UTC ranges and gives the local
// day of any instant in them. Both come from one pinned copy of the tz database that is embedded in the binary (see
// zones.go), so they cannot disagree. It is pure.
package daterange

import "time"

// MaxDays is the greatest number of calendar days a range may cover, inclusive (spec 2.12).
const MaxDays = 366

// A Range is a sequence of complete local days.
type Range struct {
	Start    Date // inclusive
	End      Date // inclusive
	Timezone string

	StartUTC time.Time // inclusive: the first instant whose local date is Start or later (contract 4.8)
	EndUTC   time.Time // exclusive: the first instant whose local date is after End

	// Offsets give the wall clock throughout the range, in the order of time. There is at least one.
	Offsets []Offset
}

// An Offset is the wall clock's lead over UTC, in force until UntilUTC.
type Offset struct {
	UntilUTC time.Time // exclusive
	Millis   int64     // local time minus UTC in milliseconds
}

// An Error says why a range was refused.
type Error struct {
	Param  string // the place in the request: range.start, range.end, range.timezone, or range
	Reason string
}

func (e *Error) Error() string { return e.Param + " " + e.Reason }

// The errors of Parse.
var (
	ErrStart    = &Error{"range.start", "is no calendar date of the form YYYY-MM-DD"}
	ErrEnd      = &Error{"range.end", "is no calendar date of the form YYYY-MM-DD"}
	ErrTimezone = &Error{"range.timezone", "is no canonical IANA zone"}
	ErrOrder    = &Error{"range.start", "is after range.end"}
	ErrTooLarge = &Error{"range", "covers more than 366 days"}
)

// Parse builds the range of the local days start to end, both inclusive, in timezone (spec 2.12,
// 4.2 rule 1, contract 4.8 and 4.9). The error is one of the above.
func Parse(start, end, timezone string) (Range, error) {
	r := Range{Timezone: timezone}
	var ok bool
	if r.Start, ok = ParseDate(start); !ok {
		return Range{}, ErrStart
	}
	if r.End, ok = ParseDate(end); !ok {
		return Range{}, ErrEnd
	}
	zone, ok := loadZone(timezone)
	switch {
	case !ok:
		return Range{}, ErrTimezone
	case r.Start > r.End:
		return Range{}, ErrOrder
	case r.End-r.Start >= MaxDays:
		return Range{}, ErrTooLarge
	}
	r.StartUTC = firstInstant(r.Start, zone)
	r.EndUTC = firstInstant(r.End+1, zone)
	// RFC 3339 writes the years 0000 to 9999 only; a range that leaves them cannot be answered.
	if r.StartUTC.Year() < 0 {
		return Range{}, ErrStart
	}
	if r.EndUTC.Year() > 9999 {
		return Range{}, ErrEnd
	}
	// Also a range without instants, of a day that the zone skipped, has an offset.
	for at, end := r.StartUTC.Unix(), r.EndUTC.Unix(); at < end || len(r.Offsets) == 0; {
		offset, until := offsetAt(zone, at)
		at = min(until, end)
		o := Offset{UntilUTC: time.Unix(at, 0).UTC(), Millis: offset * 1000}
		if last := len(r.Offsets) - 1; last >= 0 && r.Offsets[last].Millis == o.Millis {
			r.Offsets[last] = o // only the name of the time changed, or the year
		} else {
			r.Offsets = append(r.Offsets, o)
		}
	}
	return r, nil
}

// firstInstant is the first instant whose local date in zone is d or later. Where midnight exists twice it is the first
// one; where d was skipped it is the instant at which the clock jumped over it.
func firstInstant(d Date, zone *time.Location) time.Time {
	midnight := int64(d) * secondsPerDay
	// No wall clock is ever two days away from UTC, so the date d lies wholly after this.
	at := midnight - 2*secondsPerDay
	for {
		offset, until := offsetAt(zone, at)
		if first := max(at, midnight-offset); first < until {
			return time.Unix(first, 0).UTC()
		}
		at = until
	}
}
