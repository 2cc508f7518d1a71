package push_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A movingWriter says that all runs moved, of each batch since another instant.
type movingWriter struct {
	push.Writer
	since   time.Time
	step    time.Duration
	resolve func(since time.Time) error
}

func (w *movingWriter) Write(_ context.Context, b *write.Batch) error {
	w.since = w.since.Add(w.step)
	b.Moved = write.Moved{Organizations: b.Organizations(), Since: w.since}
	return nil
}

func (w *movingWriter) Closed(context.Context, map[schema.OrganizationID]bool) (map[schema.OrganizationID]bool, error) {
	return nil, nil
}

func (w *movingWriter) Excludes(*normalize.Attribution) error { return nil }

func (w *movingWriter) Resolve(_ context.Context, since time.Time) error { return w.resolve(since) }

// Requests whose runs moved wait for one resolution together, which begins when all of them have been stored, and which
// also looks at what one before it failed to resolve.
func TestRequestsResolveTogether(t *testing.T) {
	const others = 5
	run := fmt.Sprintf(`{"record":"run","organization_id":"acme","run_id":"%[1]s","agent_id":"%[1]s","status":"FAILED",`+
		`"created_at":"2026-01-05T09:30:00Z","updated_at":"2026-01-05T09:30:00Z"}`, olaptest.ShortID(1))
	begin := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for step, failed := range map[time.Duration]error{-time.Second: nil, time.Second: errors.New("the store is away")} {
		writer := &movingWriter{since: begin, step: step}
		lane := push.NewLane(writer, push.NewMetrics(), quiet)
		store := func() error { return lane.Store(t.Context(), read(t, "acme", run), func() {}) }
		var pushing sync.WaitGroup
		var resolved []time.Time
		writer.resolve = func(since time.Time) error {
			if resolved = append(resolved, since); len(resolved) > 1 {
				return nil
			}
			for range others {
				pushing.Go(func() {
					if err := store(); err != nil {
						t.Error(err)
					}
				})
			}
			until(func() bool { return lane.Resolving() >= others })
			return failed
		}
		if err := store(); !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		pushing.Wait()
		lane.Close()
		earliest := writer.since
		if failed != nil {
			earliest = begin.Add(step)
		}
		if len(resolved) != 2 || !resolved[0].Equal(begin.Add(step)) || !resolved[1].Equal(earliest) {
			t.Errorf("resolved what was stored since %v, of which the earliest is %v", resolved, earliest)
		}
	}
}
