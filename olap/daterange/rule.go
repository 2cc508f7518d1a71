package daterange

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A yearlyRule changes between two offsets twice in every year, for ever. It is the footer of a TZif file.
type yearlyRule struct {
	standard, summer int64 // seconds ahead of UTC
	begins, ends     changeDay
}

// A changeDay is the day of a month on which summer time begins or ends, and the time of it.
type changeDay struct {
	month   time.Month
	week    int // from 1; 5 is the last one
	weekday time.Weekday
	seconds int64 // after midnight on the wall clock that is valid until then; below 0 or above a day too
}

// offsetAt is wallClock.offsetAt for an instant after the last transition of the table.
func (r *yearlyRule) offsetAt(at int64) (offset, until int64) {
	// A local year begins and ends less than a week away from the UTC year of the same number, so the previous and the
	// next year have the transitions before and after any instant of it. The result lies strictly between them.
	year := time.Unix(at, 0).UTC().Year()
	before, until := int64(-never), int64(never)
	for y := year - 1; y <= year+1; y++ {
		for _, change := range [2]transition{
			{r.begins.in(y) - r.standard, r.summer},
			{r.ends.in(y) - r.summer, r.standard},
		} {
			if change.at <= at && change.at > before {
				before, offset = change.at, change.offset
			}
			if change.at > at && change.at < until {
				until = change.at
			}
		}
	}
	return offset, until
}

// in is the instant of the change in a year, as if the wall clock showed UTC.
func (d changeDay) in(year int) int64 {
	first := time.Date(year, d.month, 1, 0, 0, 0, 0, time.UTC)
	day := 1 + (int(d.weekday)-int(first.Weekday())+7)%7 + (d.week-1)*7
	if days := first.AddDate(0, 1, -1).Day(); day > days {
		day -= 7
	}
	return first.Unix() + int64(day-1)*secondsPerDay + d.seconds
}

// The footer's grammar is that of the variable TZ in POSIX, with the extension of RFC 9636 that times may be
// from -167 to 167 hours. Of its three ways to name a day the tz database uses this one only: month, week, weekday.
const (
	footerName = `(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)`
	footerTime = `[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}`
	footerDay  = `M(?:1[0-2]|[1-9])\.[1-5]\.[0-6](?:/` + footerTime + `)?`
)

var footerForm = regexp.MustCompile(`^` + footerName + `(` + footerTime + `)` +
	`(?:` + footerName + `(` + footerTime + `)?,(` + footerDay + `),(` + footerDay + `))?$`)

// parseFooter reads a TZif file's footer: an offset that stays for ever, or a rule.
func parseFooter(footer string) (fixed int64, rule *yearlyRule, err error) {
	parts := footerForm.FindStringSubmatch(footer)
	if parts == nil {
		return 0, nil, fmt.Errorf("unknown form of footer: %q", footer)
	}
	// POSIX counts offsets west of UTC.
	fixed = -parseClockTime(parts[1])
	if parts[3] == "" {
		return fixed, nil, nil
	}
	rule = &yearlyRule{fixed, fixed + 3600, parseChangeDay(parts[3]), parseChangeDay(parts[4])}
	if parts[2] != "" {
		rule.summer = -parseClockTime(parts[2])
	}
	return 0, rule, nil
}

// parseChangeDay reads Mmonth.week.weekday/time, where the time is 02:00 if absent. The form has been checked.
func parseChangeDay(text string) changeDay {
	day, clock, timed := strings.Cut(text[len("M"):], "/")
	numbers := parseNumbers(day, ".")
	d := changeDay{time.Month(numbers[0]), int(numbers[1]), time.Weekday(numbers[2]), 2 * 3600}
	if timed {
		d.seconds = parseClockTime(clock)
	}
	return d
}

// parseClockTime reads [+-]hours[:minutes[:seconds]] as seconds. The form has been checked.
func parseClockTime(text string) (seconds int64) {
	unsigned := strings.TrimLeft(text, "+-")
	for i, number := range parseNumbers(unsigned, ":") {
		seconds += number * [...]int64{3600, 60, 1}[i]
	}
	if strings.HasPrefix(text, "-") {
		return -seconds
	}
	return seconds
}

func parseNumbers(text, separator string) (numbers []int64) {
	for part := range strings.SplitSeq(text, separator) {
		number, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			panic("daterange: " + err.Error()) // the form has been checked
		}
		numbers = append(numbers, number)
	}
	return numbers
}
