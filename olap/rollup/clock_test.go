package rollup

import (
	"testing"
	"time"
)

func TestClockSetBack(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		before, store, after float64 // of the second reading; the first one is at 0
		back                 float64
		certain              bool
	}{
		"goes on":                    {10, 10, 10, 0, false},
		"goes on, slow answer":       {10, 10.5, 10.9, 0, false},
		"set forward":                {10, 20, 10, 0, false},
		"set back a little":          {10, 9.5, 10, 0, false},
		"set back":                   {10, 5, 10, 5, true},
		"set back by the tolerance":  {10, 9, 10, 1, true},
		"paused before the answer":   {10, 10, 70, 60, false},
		"set back, paused meanwhile": {10, 5, 70, 65, true},
	} {
		w := &clockWatch{}
		if back, certain := w.setBack(at(0), at(0), at(0)); back != 0 || certain {
			t.Errorf("%s: the first reading gives %s", name, back)
		}
		back, certain := w.setBack(at(c.before), at(c.store), at(c.after))
		if back.Seconds() != c.back || certain != c.certain {
			t.Errorf("%s: set back by %s, certain: %t; want %g s, %t", name, back, certain, c.back, c.certain)
		}
	}
}
