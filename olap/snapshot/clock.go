package snapshot

import (
	"sync"
	"time"
)

// Tolerance is how far the store's clock and that of a process may part between two readings without being taken for
// set back; less than ClockMargin.
const Tolerance = ClockMargin / 2

// drift is how fast the two clocks may part from each other, of a second.
const drift = time.Millisecond / 2

// setBacks counts how often the store's clock was set back by the Tolerance or more since a process reads it. It is
// certain of each, however long statements took; it may miss one that hid behind a slow statement until the next
// reading. It is safe for concurrent use.
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
	case expected-atMost >= Tolerance:
		s.n++
		s.least, s.read = atLeast, after
	case atLeast > expected:
		s.least, s.read = atLeast, after
	}
	return s.n
}

// A setBackLog keeps the rollup out of use since the store's clock was seen to be set back, until a refresher has
// committed a watermark of after the first reading of the log from then on.
type setBackLog struct {
	mu       sync.Mutex
	setBacks uint64 // how often it had been set back when the log was read last
	commit   uint64 // that was the last one when it was found to be set back; 0 once there is a later one
}

// observe says in the log whether the store's clock was set back, of which it is known how often it was.
func (l *setBackLog) observe(setBacks uint64, log *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if setBacks > l.setBacks {
		l.setBacks, l.commit = setBacks, log.Committed
	}
	if log.Committed > l.commit {
		l.commit = 0
	}
	log.SetBack = log.SetBack || l.commit > 0
}
