package snapshot

import (
	"testing"
	"time"
)

// The clock is said to be set back when it certainly was, also where a slow statement hid it at first.
func TestSetBacksAreCounted(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	type reading struct{ before, store, after float64 }
	for name, c := range map[string]struct {
		readings []reading
		want     uint64
	}{
		"goes on":                       {[]reading{{0, 0, 0}, {10, 10, 10}, {20, 20, 20}}, 0},
		"slow answers":                  {[]reading{{0, 0, 0}, {10, 10, 70}, {71, 131, 131}, {132, 132, 132}}, 0},
		"a clock of an hour ago":        {[]reading{{3600, 0, 3601}, {3610, 10, 3610}}, 0},
		"set forward":                   {[]reading{{0, 0, 0}, {10, 3610, 10}, {20, 3620, 20}}, 0},
		"set forward and back":          {[]reading{{0, 0, 0}, {10, 3610, 10}, {20, 20, 20}}, 1},
		"set back a little":             {[]reading{{0, 0, 0}, {10, 9.1, 10}}, 0},
		"set back":                      {[]reading{{0, 0, 0}, {10, 5, 10}, {11, 6, 11}}, 1},
		"set back twice":                {[]reading{{0, 0, 0}, {10, 5, 10}, {11, 2, 11}, {12, 3, 12}}, 2},
		"hidden by a slow answer":       {[]reading{{0, 0, 0}, {10, 5, 16}, {17, 12, 17}}, 1},
		"slower by a drift for an hour": {[]reading{{0, 0, 0}, {3600, 3598.5, 3600}}, 0},
	} {
		var s setBacks
		var got uint64
		for _, r := range c.readings {
			got = s.observe(at(r.before), at(r.store), at(r.after))
		}
		if got != c.want {
			t.Errorf("%s: set back %d times, want %d", name, got, c.want)
		}
	}
}
