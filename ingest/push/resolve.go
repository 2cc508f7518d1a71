package push

import (
	"context"
	"sync"
	"time"

	"github.com/runlens/runlens/olap/cache"
)

// A resolver makes runs that moved count once, for all requests together that wait for that: it needs the claim on the
// rollup, which one process at a time has, for some tenths of a second. The zero resolver is ready. It is safe for
// concurrent use.
type resolver struct {
	shared cache.Group[struct{}]

	mu    sync.Mutex
	since time.Time // the earliest of those that wait; zero for none
}

// resolve returns when runs that were stored since an instant count once, by one call of do. They have been
// acknowledged.
func (r *resolver) resolve(ctx context.Context, since time.Time, do func(context.Context, time.Time) error) error {
	r.add(since)
	_, err := r.shared.Do(ctx, cache.Key{}, func(ctx context.Context) (struct{}, error) {
		since := r.take()
		if since.IsZero() { // the one before began after all of them had been stored
			return struct{}{}, nil
		}
		err := do(ctx, since)
		if err != nil {
			r.add(since) // the next one makes up for it
		}
		return struct{}{}, err
	})
	return err
}

// add has the next one resolve what was stored since an instant.
func (r *resolver) add(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || since.Before(r.since) {
		r.since = since
	}
}

// take returns since when the next one resolves, and forgets it.
func (r *resolver) take() (since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, r.since = r.since, time.Time{}
	return since
}
