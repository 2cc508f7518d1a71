package limit

import (
	"sync"
	"time"
)

// sweepEvery is after how many hits idle windows are dropped.
const sweepEvery = 1024

// A Keyed is a window per key. Only keys with hits in the last span take memory. It is safe for
// concurrent use.
type Keyed struct {
	most int
	span time.Duration

	mu      sync.Mutex
	windows map[string]*Window
	hits    int
}

// NewKeyed returns windows that each admit most hits in any span.
func NewKeyed(most int, span time.Duration) *Keyed {
	return &Keyed{most: most, span: span, windows: map[string]*Window{}}
}

// Take admits one hit of a key at now and returns the state of its window.
func (k *Keyed) Take(key string, now time.Time) (bool, State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hits++; k.hits%sweepEvery == 0 {
		for key, window := range k.windows {
			if window.idle(now) {
				delete(k.windows, key)
			}
		}
	}
	window, ok := k.windows[key]
	if !ok {
		window = NewWindow(k.most, k.span)
		k.windows[key] = window
	}
	return window.TakeState(now)
}
