package daterange

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// The Gregorian calendar repeats itself after 400 years, weekdays included.
	period = 146_097 * secondsPerDay
	// The tables of all zones end before 2088, most of them before 2038; from then on rules hold.
	rulesBegin = 2_114_380_800 // 2037-01-01T00:00:00Z
	tablesEnd  = 3_723_753_600 // 2088-01-01T00:00:00Z
)

func goOffset(zone *time.Location, at int64) int64 {
	_, offset := time.Unix(at, 0).In(zone).Zone()
	return int64(offset)
}

// goDay is the local day of an instant.
func goDay(zone *time.Location, at int64) Date {
	local := at + goOffset(zone, at)
	return Date((local - ((local%secondsPerDay)+secondsPerDay)%secondsPerDay) / secondsPerDay)
}

// inEveryZone runs a check of every canonical zone, on all processors.
func inEveryZone(t *testing.T, check func(name string, zone *time.Location)) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range Zones() {
		group.Go(func() error {
			zone, _ := loadZone(name)
			check(name, zone)
			return nil
		})
	}
	group.Wait()
}

// closely says which years are walked day by day around each change of a clock: all to 2500, then some of every kind.
// The calendar repeats itself after 400 years.
func closely(year int) bool {
	return year >= 1840 && year <= 2500 || year%100 <= 1 || year%100 == 96 || year > 9990
}

// In every zone, at every change of its clock and every year's end of the years 1 to 9999: days follow each other
// without a gap or an overlap, begin when the wall clock says so, and the offsets of a range are the wall clock's.
func TestEveryTransition(t *testing.T) {
	first, last := utc("0001-01-01T00:00:00Z").Unix(), utc("9999-12-28T00:00:00Z").Unix()
	inEveryZone(t, func(name string, zone *time.Location) {
		for at := first; ; {
			_, until := offsetAt(zone, at)
			if until <= at {
				t.Errorf("%s: what begins at %v ends at %v", name, time.Unix(at, 0).UTC(), time.Unix(until, 0).UTC())
				return
			}
			if at = until; at >= last {
				break
			}
			if closely(time.Unix(at, 0).UTC().Year()) {
				checkDays(t, name, zone, Date(at/secondsPerDay))
			}
		}
		for year := 1; year < 9999; year++ {
			if closely(year) {
				checkDays(t, name, zone, Date(time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).Unix()/secondsPerDay))
			}
		}
	})
}

// checkDays checks the days around a day.
func checkDays(t *testing.T, name string, zone *time.Location, day Date) {
	const around = 2
	begins := make([]time.Time, 0, 2*around+2)
	for d := day - around; d <= day+around+1; d++ {
		begin := firstInstant(d, zone)
		if before, from := goDay(zone, begin.Unix()-1), goDay(zone, begin.Unix()); before >= d || from < d {
			t.Errorf("%s: %v begins at %v, which is on %v, and a second before is on %v", name, d, begin, from, before)
		}
		begins = append(begins, begin)
	}
	if !slices.IsSortedFunc(begins, time.Time.Compare) {
		t.Errorf("%s: the days from %v on begin at %v", name, day-around, begins)
	}
	r, err := Parse((day - around).String(), (day + around).String(), name)
	if err != nil {
		t.Error(name, day, err)
		return
	}
	if !r.StartUTC.Equal(begins[0]) || !r.EndUTC.Equal(begins[len(begins)-1]) {
		t.Errorf("%s: %v and the days around it are [%v, %v)", name, day, r.StartUTC, r.EndUTC)
	}
	from := r.StartUTC
	for _, o := range r.Offsets {
		for _, at := range []int64{from.Unix(), o.UntilUTC.Unix() - 1} {
			if offset := goOffset(zone, at) * 1000; offset != o.Millis {
				t.Errorf("%s: at %v the clock is %d ms ahead, not %d ms", name, time.Unix(at, 0).UTC(), offset, o.Millis)
			}
		}
		if !from.Before(o.UntilUTC) {
			t.Errorf("%s: an offset from %v to %v", name, from, o.UntilUTC)
		}
		from = o.UntilUTC
	}
	if !from.Equal(r.EndUTC) {
		t.Errorf("%s: the offsets end at %v, the range at %v", name, from, r.EndUTC)
	}
}

// No change of a clock is missed: the offsets of every midnight UTC are Go's for as long as rules take to repeat
// themselves.
func TestNoTransitionIsMissed(t *testing.T) {
	inEveryZone(t, func(name string, zone *time.Location) {
		for at, end := int64(rulesBegin), int64(tablesEnd+period); at < end; {
			offset, until := offsetAt(zone, at)
			for ; at < min(until, end); at += secondsPerDay {
				if offset != goOffset(zone, at) {
					t.Errorf("%s: at %v the clock is %d s ahead, not %d", name, time.Unix(at, 0).UTC(), goOffset(zone, at), offset)
				}
			}
		}
	})
}
