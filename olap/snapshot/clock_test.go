package snapshot

import (
	"testing"
	"time"
)

// The clock is said to be set back when it may have been, and counted when it certainly was, also where a slow
// statement hid it at first.
func TestSetBacksAreNoticed(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	type reading struct{ before, store, after float64 }
	for name, c := range map[string]struct {
		readings []reading
		certain  int
		back     float64 // at the last reading, in seconds
	}{
		"goes on":                       {[]reading{{0, 0, 0}, {10, 10, 10}, {20, 20, 20}}, 0, 0},
		"slow answer":                   {[]reading{{0, 0, 0}, {10, 10.5, 10.9}}, 0, 0},
		"slow answers":                  {[]reading{{0, 0, 0}, {10, 10, 70}, {71, 131, 131}, {132, 132, 132}}, 0, 60},
		"a clock of an hour ago":        {[]reading{{3600, 0, 3601}, {3611, 11, 3611}}, 0, 0},
		"set forward":                   {[]reading{{0, 0, 0}, {10, 3610, 10}, {20, 3620, 20}}, 0, 0},
		"set forward and back":          {[]reading{{0, 0, 0}, {10, 3610, 10}, {20, 20, 20}}, 1, 3600},
		"set back a little":             {[]reading{{0, 0, 0}, {10, 9.1, 10}}, 0, 0},
		"perhaps set back":              {[]reading{{0, 0, 0}, {10, 9, 10}}, 0, 1},
		"paused before the answer":      {[]reading{{0, 0, 0}, {10, 10, 70}}, 0, 60},
		"set back, paused meanwhile":    {[]reading{{0, 0, 0}, {10, 5, 70}}, 1, 65},
		"set back":                      {[]reading{{0, 0, 0}, {10, 5, 10}}, 1, 5},
		"set back once":                 {[]reading{{0, 0, 0}, {10, 5, 10}, {11, 6, 11}}, 1, 0},
		"set back twice":                {[]reading{{0, 0, 0}, {10, 5, 10}, {11, 2, 11}}, 2, 4},
		"hidden by a slow answer":       {[]reading{{0, 0, 0}, {10, 5, 16}, {17, 12, 17}}, 1, 0},
		"slower by a drift for an hour": {[]reading{{0, 0, 0}, {3600, 3599.1, 3600}}, 0, 0},
	} {
		var w ClockWatch
		var back time.Duration
		n := 0
		for _, r := range c.readings {
			var certain bool
			if back, certain = w.Observe(at(r.before), at(r.store), at(r.after)); certain {
				n++
			}
		}
		if n != c.certain || back.Seconds() != c.back {
			t.Errorf("%s: certainly set back %d times, and by %s at last; want %d, and %g s", name, n, back, c.certain, c.back)
		}
	}
}
