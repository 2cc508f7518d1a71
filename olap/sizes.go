package olap

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// sizeAge is how long sizes are believed, which decide between two ways to the same answer, and how long it may take
// until attribution records with conflicts are collapsed.
const sizeAge = 10 * time.Second

// countedFrom is the number of rows from which the size of an organization's records matters.
const countedFrom = 10_000

// A sizes caches the sizes of all organizations that are not small, from one statement for all of them.
type sizes struct {
	conn    driver.Conn
	maxAge  time.Duration // sizeAge but for tests
	reading cache.Group[rollup.Sizes]

	mu     sync.Mutex
	cached rollup.Sizes
	at     time.Time // when they had been asked for
}

// of returns the size of an organization's records.
func (s *sizes) of(ctx context.Context, of snapshot.Records) (rollup.Size, error) {
	s.mu.Lock()
	known, fresh := s.cached, time.Since(s.at) < s.maxAge
	s.mu.Unlock()
	if !fresh {
		var err error
		if known, err = s.read(ctx); err != nil {
			return rollup.Size{}, err
		}
	}
	return known[of], nil
}

func (s *sizes) read(ctx context.Context) (rollup.Sizes, error) {
	return s.reading.Do(ctx, cache.Key{}, func(ctx context.Context) (rollup.Sizes, error) {
		at := time.Now()
		read, err := rollup.ReadSizes(ctx, s.conn, countedFrom)
		if err == nil {
			s.mu.Lock()
			s.cached, s.at = read, at
			s.mu.Unlock()
		}
		return read, err
	})
}

// Follow reads sizes and what boundaries need again and again until ctx is done, so that no query has to wait for them,
// and looks for the views that cached answers rest on. A read that fails is left to the next one, and to the queries.
func (e *Engine) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		e.follow(ctx)
		_ = snapshot.Pause(ctx, e.sizes.maxAge/2)
	}
}

func (e *Engine) follow(ctx context.Context) {
	_, _ = e.sizes.read(ctx)
	_ = e.boundaries.Read(ctx)
	if e.answers != nil {
		e.answers.follow(ctx)
	}
}
