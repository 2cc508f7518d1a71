package rollup

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// maxDelta is the most rows of a delta that is cached: to send more would cost as much as to compute them inline.
	maxDelta = 20_000
	// maxDeltas is of how many organizations and sources deltas are cached: 50 take 150 MiB at most.
	maxDeltas = 50
	deltaAge  = time.Minute
	// backOff is how long a delta is not read again after it had too many rows.
	backOff = 2 * time.Second
	// batchPatience is how long a query waits for the end of a refresh batch. To compute the delta inline meanwhile takes
	// longer, and the batch too. A batch that takes longer is that of a large load; no query waits for it again.
	batchPatience = time.Second
	batchPoll     = 20 * time.Millisecond
)

// A Cached is a delta with the state of the store that it completes.
//
// It is valid for a query as long as the insert counter and the counter of the log are those of before it was read. The
// counters are read when the query begins. What is written to the log from then on, before the statement has its
// snapshots, makes the statement fail (schema.RollupUnchanged).
type Cached struct {
	State      State
	Delta      *Delta            // nil where it could not be read apart from a statement
	SharedKeys bool              // an initiator key represents two texts, those of the delta among them
	Counters   snapshot.Counters // before it was read; Now is when it was last found to be valid
	since      time.Time         // what the delta lacks was stored after it
	readAt     time.Time
}

// Deltas caches deltas by organization and source, and reads what was stored since.
type Deltas struct {
	conn    driver.Conn
	cached  *cache.Cache[snapshot.Records, Cached]
	reading cache.Group[Cached]
	waiting cache.Group[struct{}] // for a batch

	// Most, Patience and Margin are maxDelta, batchPatience and snapshot.ClockMargin but for tests.
	Most     int
	Patience time.Duration
	Margin   time.Duration

	mu        sync.Mutex
	longBatch uint64 // number before that of a batch that took longer than batchPatience
}

// NewDeltas returns Deltas that have cached nothing.
func NewDeltas(conn driver.Conn) *Deltas {
	return &Deltas{
		conn: conn, cached: cache.New[snapshot.Records, Cached](maxDeltas, deltaAge),
		Most: maxDelta, Patience: batchPatience, Margin: snapshot.ClockMargin,
	}
}

// Get returns the delta of an organization's records, with everything that was acknowledged before the call. Its Delta
// is nil where a statement has to compute the delta inline.
//
//  1. Read the counters. Where they are those of the cached delta, that is the answer.
//  2. Wait for a refresh batch in progress, batchPatience at most: what it writes would count twice.
//  3. Read the delta again, once for all queries that need it meanwhile. While no refresh begins, the cached rows stay
//     valid, and only what was stored since is read.
func (d *Deltas) Get(ctx context.Context, of snapshot.Records) (Cached, error) {
	counters, err := snapshot.ReadCounters(ctx, d.conn, of)
	if err != nil {
		return Cached{}, err
	}
	last, known := d.cached.Get(of)
	if known && counters.Same(last.Counters) {
		last.Counters.Now = counters.Now
		return last, nil
	}
	if known && last.Delta == nil && time.Since(last.readAt) < backOff {
		return Cached{}, nil
	}
	key := string(of.Organization) + "\x00" + of.Source
	wait := func(ctx context.Context) (struct{}, error) { return struct{}{}, d.awaitBatch(ctx, of) }
	if _, err := d.waiting.Do(ctx, key, wait); err != nil {
		return Cached{}, err
	}
	return d.reading.Do(ctx, key, func(ctx context.Context) (Cached, error) { return d.read(ctx, of) })
}

// Len is the number of rows of the cached delta; -1 where there is none.
func (d *Deltas) Len(of snapshot.Records) int {
	if last, known := d.cached.Get(of); known && last.Delta != nil {
		return last.Delta.Len()
	}
	return -1
}

// awaitBatch waits for the end of a refresh batch, if one is in progress and the rollup can be used after it.
func (d *Deltas) awaitBatch(ctx context.Context, of snapshot.Records) error {
	for began := time.Now(); ; {
		state, err := ReadState(ctx, d.conn)
		if err != nil || !state.Refreshing || state.Watermark(of).IsZero() || d.isLong(state.Number, time.Since(began)) {
			return err
		}
		if err := snapshot.Pause(ctx, batchPoll); err != nil {
			return err
		}
	}
}

// isLong reports whether the batch after a number takes longer than batchPatience, for which somebody has waited.
func (d *Deltas) isLong(number uint64, waited time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if waited >= d.Patience {
		d.longBatch = number
	}
	return d.longBatch == number
}

// read reads a delta and caches it, also one that has too many rows.
func (d *Deltas) read(ctx context.Context, of snapshot.Records) (c Cached, err error) {
	if c.Counters, err = snapshot.ReadCounters(ctx, d.conn, of); err != nil {
		return c, err
	}
	if c.State, err = ReadState(ctx, d.conn); err != nil {
		return c, err
	}
	since := c.State.Watermark(of)
	if since.IsZero() || c.State.Refreshing {
		return c, nil
	}
	inserts, err := snapshot.InFlight(ctx, d.conn)
	if err != nil || inserts.Refreshing { // a batch that was begun since may write already
		return c, err
	}
	var before *Delta
	if last, _ := d.cached.Get(of); last.Delta != nil && last.Counters.Log == c.Counters.Log && last.since.After(since) {
		since, before = last.since, last.Delta
	}
	c.since = inserts.Oldest.Add(-d.Margin - time.Millisecond)
	c.Delta, err = ReadDelta(ctx, d.conn, of, since, before, d.Most)
	if err == nil && c.Delta != nil && len(schema.RollupOf(of.Source).Texts) > 0 {
		c.SharedKeys, err = c.Delta.sharedKeys(ctx, d.conn, of.Organization)
	}
	if err == nil {
		c.readAt = time.Now()
		d.cached.Put(of, c)
	}
	return c, err
}
