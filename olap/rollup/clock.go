package rollup

import (
	"sync"
	"time"
)

// A clockWatch compares the store's clock with the monotonic one of this process.
type clockWatch struct {
	store         time.Time // what the store's clock was
	before, after time.Time // by this process, before and after it was read
}

// tolerance is how far the clocks may differ between two readings without a reason to refresh again; less than Margin.
const tolerance = Margin / 2

// setBack returns by how much the store's clock may have been set back since it was read last; 0 for less than the
// tolerance. It is certain if it was, however long this process was paused between a query and its answer.
func (w *clockWatch) setBack(before, store, after time.Time) (back time.Duration, certain bool) {
	last := *w
	*w = clockWatch{store, before, after}
	if last.before.IsZero() {
		return 0, false
	}
	if back = after.Sub(last.before) - store.Sub(last.store); back < tolerance {
		return 0, false
	}
	return back, before.Sub(last.after)-store.Sub(last.store) >= tolerance
}

// drift is how fast the two clocks may part from each other, of a second.
const drift = time.Millisecond / 2

// setBacks counts how often the store's clock was set back by tolerance or more since a process reads it. It is certain
// of each, however long statements took; it may miss one that hid behind a slow statement until the next reading. It is
// safe for concurrent use.
type setBacks struct {
	mu     sync.Mutex
	least  time.Duration // by which the store's clock was ahead of origin's at the last reading, at least
	origin time.Time     // of this process
	read   time.Time     // zero before the first reading
	n      uint64
}

// observe notes what the store's clock was between two instants of this process, zero for unknown, and returns how
// often it was set back by then.
func (s *setBacks) observe(before, store, after time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store.IsZero() {
		return s.n
	}
	if s.origin.IsZero() {
		s.origin = before
	}
	atLeast, atMost := store.Sub(s.origin)-after.Sub(s.origin), store.Sub(s.origin)-before.Sub(s.origin)
	expected := s.least - time.Duration(after.Sub(s.read).Seconds()*float64(drift))
	switch {
	case s.read.IsZero():
		s.least, s.read = atLeast, after
	case expected-atMost >= tolerance:
		s.n++
		s.least, s.read = atLeast, after
	case atLeast > expected:
		s.least, s.read = atLeast, after
	}
	return s.n
}
