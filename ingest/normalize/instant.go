package normalize

import (
	"bytes"
	"time"
)

const (
	wantsInstant = "must be an RFC 3339 time with offset such as 2026-01-31T09:30:00.000Z"
	lacksOffset  = "has no offset, so that its time zone would be a guess; " + wantsInstant
)

// parseInstant reads an RFC 3339 time with offset, and what databases print for one: a space for the T (PostgreSQL,
// DuckDB), offsets such as +00, +0530 and +05:30:15, and " UTC" (BigQuery). What is finer than a millisecond is cut off
// towards the past. The reason is empty if the time is right.
func parseInstant(text []byte) (ms Instant, reason string) {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(text) < len(form) {
		return 0, wantsInstant
	}
	// Package time is quicker, but also takes an hour of one digit, a comma before the fraction and an offset of 24 hours.
	var t time.Time
	strict := text[10] == 'T' && text[13] == ':' && text[len(text)-1] == 'Z' && bytes.IndexByte(text, ',') < 0
	if strict && t.UnmarshalText(text) == nil {
		return t.UnixMilli(), ""
	}
	for i, c := range []byte(form) {
		switch got := text[i]; {
		case c == 'd' && isDigit(got), c == got:
		case c == 'T' && (got == ' ' || got == 't'):
		default:
			return 0, wantsInstant
		}
	}
	year, month, day := number(text[:4]), number(text[5:7]), number(text[8:10])
	hour, minute, second := number(text[11:13]), number(text[14:16]), number(text[17:19])
	rest := text[len(form):]
	millis := 0
	if len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		digit := 100
		for rest = rest[1:]; len(rest) > 0 && isDigit(rest[0]); rest = rest[1:] {
			millis += digit * int(rest[0]-'0')
			digit /= 10
		}
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if hour > 23 || minute > 59 || second > 59 || t.Day() != day || int(t.Month()) != month {
		return 0, wantsInstant
	}
	if len(rest) == 0 {
		return 0, lacksOffset
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return 0, wantsInstant
	}
	return t.UnixMilli() + int64(millis) - int64(offset)*1000, ""
}

// parseOffset reads the seconds that a time is ahead of UTC, less than a day.
func parseOffset(text []byte) (seconds int, ok bool) {
	if len(text) > 3 && text[0] == ' ' {
		text = text[1:]
	}
	switch string(text) {
	case "Z", "z", "UTC":
		return 0, true
	}
	if text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	digits := text[1:]
	if parts := bytes.Split(digits, []byte{':'}); len(parts) > 1 {
		for _, part := range parts {
			if len(part) != 2 {
				return 0, false
			}
		}
		digits = bytes.Join(parts, nil)
	}
	if len(digits) != 2 && len(digits) != 4 && len(digits) != 6 {
		return 0, false
	}
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
	}
	digits = append(bytes.Clone(digits), "0000"...)
	hours, minutes, rest := number(digits[:2]), number(digits[2:4]), number(digits[4:6])
	if hours > 23 || minutes > 59 || rest > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60 + rest
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func number(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return n
}
