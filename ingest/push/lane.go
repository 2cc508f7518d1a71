package push

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

const (
	// What one insert takes of the requests that wait, at least one of them.
	insertRecords = 50_000
	insertBytes   = 10 << 20
	// insertParts is of how many months of runs and of attribution records one insert has records of one organization:
	// each is a part of its own, which takes 7 ms. A body with more is stored by several inserts, so that those of others
	// don't wait for all of it.
	insertParts = 100

	// insertEvery is the least time between the begins of two inserts while less than insertBytes wait. It bounds the
	// parts that small requests make, and what a request waits for that.
	insertEvery = 100 * time.Millisecond

	// Patience is how long what fails for a passing reason is tried again before the requests fail.
	Patience = 10 * time.Second
	// insertTimeout bounds an insert with all its tries.
	insertTimeout = time.Minute
)

// ErrMoving is returned for records of an organization that is being moved to another cell. They can be stored a moment
// later.
var ErrMoving = errors.New("the organization is being moved to another cell")

// A Writer stores batches, as those of package write do.
type Writer interface {
	Write(context.Context, *write.Batch) error
	// Closed returns which organizations may not be written in the cell now; nil for none.
	Closed(context.Context, map[schema.OrganizationID]bool) (map[schema.OrganizationID]bool, error)
	// Excludes says why an attribution record stays out because its person was purged; nil if it does not.
	Excludes(*normalize.Attribution) error
	// Resolve makes runs count once that were stored since, of which the batch said that they moved.
	Resolve(ctx context.Context, since time.Time) error
}

// A Lane stores records in one cell. It is safe for concurrent use.
type Lane struct {
	writer  Writer
	logger  *slog.Logger
	metrics *Metrics

	mu      sync.Mutex
	waiting []*entry
	bytes   int64 // of waiting
	running bool
	full    chan struct{} // has something once insertBytes wait
	began   time.Time     // the last insert
	ending  sync.WaitGroup

	resolver resolver
}

// An entry is records that wait, and what is called when they don't take memory any more.
type entry struct {
	*Records
	release func()
	taken   part // what the insert has that is next, or under way; the rest waits
}

// NewLane returns a Lane that stores with writer.
func NewLane(writer Writer, metrics *Metrics, logger *slog.Logger) *Lane {
	return &Lane{writer: writer, metrics: metrics, logger: logger, full: make(chan struct{}, 1)}
}

// Store returns when records are stored and count once, all that are not rejected; some may be rejected only now,
// because their person was purged. It calls release once, when their memory is free, which may be after it returned.
// When ctx is done, it returns its error, and the records, which it has to itself then, may be stored later. After
// another error a part of them may be stored.
func (l *Lane) Store(ctx context.Context, r *Records, release func()) error {
	if r.left.Len() == 0 {
		release()
		return nil
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, &entry{Records: r, release: release})
	l.bytes += r.Bytes
	l.hurry()
	if !l.running {
		l.running = true
		l.ending.Go(l.run)
	}
	l.mu.Unlock()
	select {
	case err := <-r.done:
		// Here and not in the lane, which would keep everybody waiting for whoever changes the rollup.
		if err == nil && !r.movedSince.IsZero() {
			err = l.resolver.resolve(ctx, r.movedSince, l.writer.Resolve)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for the inserts that are under way. Nothing may be stored any more.
func (l *Lane) Close() { l.ending.Wait() }

// run inserts until nothing waits.
func (l *Lane) run() {
	for {
		l.pause()
		taken := l.take()
		if taken == nil {
			return
		}
		l.insert(taken)
	}
}

// pause waits until the next insert may begin.
func (l *Lane) pause() {
	select {
	case <-l.full:
	case <-time.After(time.Until(l.began.Add(insertEvery))):
	}
}

// take takes what the next insert has. It returns nil, and the run ends, if nothing waits. What does not fit stays in
// its place, and is the first one in the end.
func (l *Lane) take() (taken []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records, bytes := 0, int64(0)
	keys := map[schema.OrganizationID]partKeys{}
	for _, e := range l.waiting {
		if len(taken) > 0 && (records+e.left.Len() > insertRecords || bytes+e.Bytes > insertBytes) {
			continue
		}
		if keys[e.Organization] == nil {
			keys[e.Organization] = partKeys{}
		}
		all := e.left.Len()
		e.taken = e.left.take(keys[e.Organization])
		if n := e.taken.Len(); n > 0 {
			taken = append(taken, e)
			records, bytes = records+n, bytes+e.Bytes*int64(n)/int64(all)
		}
	}
	l.forget(func(e *entry) bool { return e.left.Len() == 0 })
	l.running = taken != nil
	l.hurry()
	return taken
}

// forget has entries wait no longer. It requires the lock.
func (l *Lane) forget(which func(*entry) bool) {
	l.waiting = slices.DeleteFunc(l.waiting, which)
	l.bytes = 0
	for _, e := range l.waiting {
		l.bytes += e.Bytes
	}
}

// hurry ends pause if enough waits for an insert. It requires the lock.
func (l *Lane) hurry() {
	if l.bytes < insertBytes {
		return
	}
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// insert stores records together and tells those who wait.
func (l *Lane) insert(entries []*entry) {
	l.began = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), insertTimeout)
	defer cancel()
	organizations := map[schema.OrganizationID]bool{}
	for _, e := range entries {
		organizations[e.Organization] = true
	}
	moving := map[schema.OrganizationID]bool{}
	closed, err := l.writer.Closed(ctx, organizations)
	maps.Copy(moving, closed)
	var open []*entry
	for _, e := range entries {
		if !moving[e.Organization] {
			open = append(open, e)
		}
	}
	if err == nil && len(open) > 0 {
		err = l.write(ctx, open)
		if moved, ok := errors.AsType[*write.MovedError](err); ok {
			err = nil
			maps.Copy(moving, moved.Organizations)
		}
	}
	if err != nil {
		l.logger.Error("pushed records could not be stored", "requests", len(open), "error", err)
	}
	l.metrics.inserted(err)
	for _, e := range entries {
		failed := err
		if moving[e.Organization] {
			failed = ErrMoving
		}
		l.end(e, failed)
	}
}

// end ends an entry of which nothing is left to be stored, or with an error.
func (l *Lane) end(e *entry, err error) {
	if err == nil && e.left.Len() > 0 {
		return
	}
	l.mu.Lock()
	l.forget(func(other *entry) bool { return other == e })
	l.mu.Unlock()
	e.done <- err
	e.release()
}

// write stores records as one batch, and rejects what stays out of it.
func (l *Lane) write(ctx context.Context, entries []*entry) error {
	all := entries[0].taken.Batch
	ends := []int{len(all.Attributions)} // of the attribution records of each entry
	for _, e := range entries[1:] {
		all.Agents = append(all.Agents, e.taken.Agents...)
		all.Runs = append(all.Runs, e.taken.Runs...)
		all.Attributions = append(all.Attributions, e.taken.Attributions...)
		ends = append(ends, len(all.Attributions))
	}
	all.Once = true // who pushed them may ask as soon as that is answered
	err := l.writer.Write(ctx, &all)
	for _, e := range entries {
		if all.Moved.Organizations[e.Organization] && e.movedSince.IsZero() {
			e.movedSince = all.Moved.Since
		}
	}
	for i := range all.Excluded {
		excluded := &all.Excluded[i]
		of, begin := 0, 0
		for excluded.Index >= ends[of] {
			begin = ends[of]
			of++
		}
		fault := l.writer.Excludes(&excluded.Attribution)
		if fault == nil { // lifted since
			fault = &normalize.Error{Field: "user_identifier", Reason: "the person was purged meanwhile"}
		}
		entries[of].reject(entries[of].taken.lines[excluded.Index-begin], fault)
	}
	return err
}
