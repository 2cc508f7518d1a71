package shared

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/runlens/runlens/http/limit"
)

// Rates are windows per key that hold over all servers. They are safe for concurrent use. No method takes longer than
// the patience of the store.
type Rates struct {
	store *Store
	name  string
	most  int
	span  time.Duration
	own   *limit.Keyed // of this server
}

var _ limit.Rates = (*Rates)(nil)

// Rates returns windows that each admit most hits in any span. The name tells them from other windows in Redis.
func (s *Store) Rates(name string, most int, span time.Duration) *Rates {
	return &Rates{store: s, name: name, most: most, span: span, own: limit.NewKeyed(most, span)}
}

// Take admits one hit of a key, or refuses it.
func (r *Rates) Take(key string, now time.Time) (bool, limit.State) {
	admitted, own := r.own.Take(key, now)
	if !admitted {
		return false, own
	}
	admitted, state, ok := r.ask(key, now, true)
	if !ok {
		r.store.local.Add(1)
		return true, own
	}
	if !admitted {
		r.own.Release(key, now)
	}
	return admitted, state
}

// Full reports whether Take would refuse a hit of a key.
func (r *Rates) Full(key string, now time.Time) bool {
	if r.own.Full(key, now) {
		return true
	}
	free, _, ok := r.ask(key, now, false)
	return ok && !free
}

// ask has the window in Redis decide; ok is false where Redis is away.
func (r *Rates) ask(key string, now time.Time, take bool) (free bool, state limit.State, ok bool) {
	if r.store.away.Load() {
		return false, limit.State{}, false
	}
	tag := tagOf(key)
	free, state, err := r.store.run(r.name, tag, r.most, r.span, take)
	if err != nil {
		r.store.gone(err, tag)
		return false, limit.State{}, false
	}
	if state.Remaining == 0 {
		// Redis counted from a moment after now.
		r.own.Close(key, now.Add(state.Reset), now)
	}
	return free, state, true
}

// tagOf stands for a key of a window in Redis, where others may read it.
func tagOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// A Window is one window that holds over all servers. It is safe for concurrent use. No method takes longer than the
// patience of the store.
type Window struct{ rates *Rates }

// Window returns a window that admits most hits in any span. The name tells it from other windows in Redis.
func (s *Store) Window(name string, most int, span time.Duration) Window {
	return Window{s.Rates(name, most, span)}
}

// Take admits one hit, or says after how long one may be admitted.
func (w Window) Take(now time.Time) (bool, time.Duration) {
	admitted, state := w.rates.Take("", now)
	return admitted, state.Reset
}

// Full reports whether Take would refuse a hit.
func (w Window) Full(now time.Time) bool { return w.rates.Full("", now) }
