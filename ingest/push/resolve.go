package push

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/cache"
)

// A resolver makes runs that moved count once, for all requests together that wait for that: it needs the claim on the
// rollup, which one process at a time has, for some tenths of a second. It is safe for concurrent use through a Lane.
type resolver struct {
	shared cache.Group[struct{}]
	since  time.Time // the earliest of those that wait, under the lane's lock; zero for none
}

// resolve returns when runs that were stored since an instant count once. They have been acknowledged.
func (l *Lane) resolve(ctx context.Context, since time.Time) error {
	l.waitFor(since)
	_, err := l.resolver.shared.Do(ctx, cache.Key{}, func(ctx context.Context) (struct{}, error) {
		l.mu.Lock()
		since := l.resolver.since
		l.resolver.since = time.Time{}
		l.mu.Unlock()
		if since.IsZero() { // the one before began after all of them had been stored
			return struct{}{}, nil
		}
		err := l.writer.Resolve(ctx, since)
		if err != nil {
			l.waitFor(since) // the next one makes up for it
		}
		return struct{}{}, err
	})
	return err
}

// waitFor has the next one resolve what was stored since an instant.
func (l *Lane) waitFor(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resolver.since.IsZero() || since.Before(l.resolver.since) {
		l.resolver.since = since
	}
}
