package daterange

import "time"

const secondsPerDay = 24 * 60 * 60

// A Date is a calendar day as the number of days since 1970-01-01, negative before it.
type Date int64

// ParseDate reads YYYY-MM-DD, a day of the years 0000 to 9999 (inclusive) that exists.
func ParseDate(s string) (Date, bool) {
	// time.Parse alone would also take a fraction of a second after some layouts; the length rules everything else out.
	if len(s) != len(time.DateOnly) {
		return 0, false
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, false
	}
	return Date(t.Unix() / secondsPerDay), true
}

// String is the date as YYYY-MM-DD.
func (d Date) String() string { return d.utcMidnight().Format(time.DateOnly) }

func (d Date) utcMidnight() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }
