package limit

import (
	"sync"
	"time"
)

// A Rates admits hits per key: a Keyed those of one process, package shared those of many.
type Rates interface {
	// Take admits one hit of a key at now, or refuses it, and returns the state of the key's window afterwards.
	Take(key string, now time.Time) (bool, State)
}

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
	return k.window(key, now).TakeState(now)
}

// Full reports whether Take would refuse a hit of a key at now.
func (k *Keyed) Full(key string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.window(key, now).Full(now)
}

// Close refuses every hit of a key before an instant.
func (k *Keyed) Close(key string, until, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window(key, now).Close(until)
}

// Release removes a hit of a key that Take admitted at an instant.
func (k *Keyed) Release(key string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if window := k.windows[key]; window != nil {
		window.Release(at)
	}
}

// window is the window of a key. Now and then it drops those that are idle. It requires the lock.
func (k *Keyed) window(key string, now time.Time) *Window {
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
	return window
}
