package limit

import (
	"sync"
	"time"
)

// A Keyed is a window per key. Only keys with hits in the last two spans take memory. It is safe for
// concurrent use.
type Keyed struct {
	most int
	span time.Duration

	mu      sync.Mutex
	windows map[string]*Window
	swept   time.Time // when idle windows were dropped
}

// NewKeyed returns windows that each admit most hits in any span.
func NewKeyed(most int, span time.Duration) *Keyed {
	return &Keyed{most: most, span: span, windows: map[string]*Window{}}
}

// Take admits one hit of a key at now and returns the state of its window.
func (k *Keyed) Take(key string, now time.Time) (bool, State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.swept) >= k.span {
		k.swept = now
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
