// Package limit bounds rates and concurrency. It knows no web framework and takes its times from
// its callers.
package limit

import (
	"slices"
	"sync"
	"time"
)

// A Window admits at most a number of hits in any span of its length: a sliding log, so that
// there is no border at which a burst could double. Refused hits do not count. It is safe for
// concurrent use.
type Window struct {
	most int
	span time.Duration

	mu     sync.Mutex
	hits   []time.Time // in order; those before first have left the window
	first  int
	closed time.Time // until then nothing is admitted
}

// NewWindow returns a window that admits most hits, at least 1, in any span.
func NewWindow(most int, span time.Duration) *Window {
	return &Window{most: most, span: span}
}

// A State is what a window says of itself.
type State struct {
	Limit     int
	Remaining int
	// Reset is when the oldest hit leaves the window: after it at least one more is admitted.
	Reset time.Duration
}

// Take admits one hit at now, or says after how long one may be admitted.
func (w *Window) Take(now time.Time) (bool, time.Duration) {
	ok, state := w.TakeState(now)
	return ok, state.Reset
}

// TakeState is Take with the window's state afterwards.
func (w *Window) TakeState(now time.Time) (bool, State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	admitted := !w.full(now)
	if admitted {
		w.hits = append(w.hits, now)
	}
	state := State{Limit: w.most, Remaining: w.most - (len(w.hits) - w.first)}
	if len(w.hits) > w.first {
		state.Reset = w.hits[w.first].Add(w.span).Sub(now)
	}
	if closed := w.closed.Sub(now); closed > 0 {
		state.Remaining = 0
		if state.Reset = closed; len(w.hits)-w.first >= w.most {
			state.Reset = max(closed, w.hits[w.first].Add(w.span).Sub(now))
		}
	}
	return admitted, state
}

// Full reports whether Take would refuse a hit at now.
func (w *Window) Full(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full(now)
}

// Close refuses every hit before an instant, as when the window is known to be full elsewhere.
func (w *Window) Close(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = until
}

// Release removes a hit that Take admitted at an instant.
func (w *Window) Release(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.hits) - 1; i >= w.first; i-- {
		if w.hits[i].Equal(at) {
			w.hits = slices.Delete(w.hits, i, i+1)
			return
		}
	}
}

// idle reports whether no hit is left in the window.
func (w *Window) idle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(now)
	return len(w.hits) == w.first && !now.Before(w.closed)
}

// full is Full for holders of the lock.
func (w *Window) full(now time.Time) bool {
	w.expire(now)
	return len(w.hits)-w.first >= w.most || now.Before(w.closed)
}

// expire drops the hits that have left the window. A hit exactly one span old has left it.
func (w *Window) expire(now time.Time) {
	for w.first < len(w.hits) && now.Sub(w.hits[w.first]) >= w.span {
		w.first++
	}
	if w.first > w.most || w.first == len(w.hits) {
		w.hits = append(w.hits[:0], w.hits[w.first:]...)
		w.first = 0
	}
}
