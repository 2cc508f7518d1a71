package rollup

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// maxDelta is the most rows of a delta that is cached: to send more would cost as much as to compute them inline.
	maxDelta = 20_000
	// maxDeltas bounds the deltas that are cached, in bytes: those of some 20 organizations with the most rows.
	maxDeltas = 64 << 20
	deltaAge  = time.Minute
	// backOff is how long a delta is not read again after it had too many rows.
	backOff = 2 * time.Second
	// idleFor is how long nothing has been stored where an empty delta is worth to be read for its own sake.
	idleFor = 2 * time.Second
)

// A Cached is a delta with the state of the store that it completes.
//
// It is valid for a query as long as the insert counter and the counter of the log are those of before it was read. The
// counters are read when the query begins. What is written to the log from then on, before the statement has its
// snapshots, makes the statement fail (schema.RollupUnchanged).
type Cached struct {
	State    State
	Delta    *Delta            // nil where it could not be read apart from a statement
	Counters snapshot.Counters // before it was read; Now is when it was last found to be valid. Always there
	since    time.Time         // what the delta lacks was stored after it
	readAt   time.Time
	setBacks uint64 // how often the store's clock had been set back
}

// Deltas caches deltas by organization and source, and reads what was stored since.
type Deltas struct {
	conn    driver.Conn
	cached  *cache.Cache[Cached]
	reading cache.Group[Cached]
	clock   setBacks

	mu       sync.Mutex
	setBacks uint64 // how often the clock had been set back when the log was read last
	setBackN uint64 // the commit that was the last one when it was found to be set back; 0 once there is a later one

	// Most, IdleFor and Margin are maxDelta, idleFor and snapshot.ClockMargin but for tests.
	Most    int
	IdleFor time.Duration
	Margin  time.Duration
}

// NewDeltas returns Deltas that have cached nothing.
func NewDeltas(conn driver.Conn) *Deltas {
	return &Deltas{
		conn: conn, cached: cache.New[Cached](maxDeltas, deltaAge),
		Most: maxDelta, IdleFor: idleFor, Margin: snapshot.ClockMargin,
	}
}

// Get returns the delta of an organization's records, with everything that was acknowledged before the call. Its Delta
// is nil where a statement has to compute the delta inline. onlyEmpty says that the query cannot use the rows of a
// delta, only that it has none.
//
//  1. Read the counters. Where they are those of the cached delta, that is the answer.
//  2. Read the delta again, once for all queries that need it meanwhile, unless only an empty one is of use and rows
//     are arriving. If the rollup is the one that the cached rows complete, they stay valid, and only what was stored
//     since is read. Both states say so, each of them read by one statement: the counters are of another moment. While
//     a refresh batch is in progress there is no delta: what the batch writes would count twice.
//
// Where the store's clock was set back, rows that are stored from then on seem older than those before. What is cached
// is not used any more, nor is the rollup, until a refresher has moved the watermark back.
func (d *Deltas) Get(ctx context.Context, of snapshot.Records, onlyEmpty bool) (Cached, error) {
	counters, setBacks, err := d.readCounters(ctx, of)
	if err != nil {
		return Cached{}, err
	}
	last, known := d.cached.Get(of.Place())
	if known && counters.Same(last.Counters) && last.setBacks == setBacks {
		last.Counters.Now = counters.Now
		return last, nil
	}
	if known && last.Delta == nil && time.Since(last.readAt) < backOff {
		return Cached{Counters: counters}, nil
	}
	if onlyEmpty && counters.Idle() < d.IdleFor {
		return Cached{Counters: counters}, nil
	}
	_, key := of.Place()
	return d.reading.Do(ctx, key, func(ctx context.Context) (Cached, error) { return d.read(ctx, of) })
}

// Len is the number of rows of the cached delta; -1 where there is none.
func (d *Deltas) Len(of snapshot.Records) int {
	if last, known := d.cached.Get(of.Place()); known && last.Delta != nil {
		return last.Delta.Len()
	}
	return -1
}

func (d *Deltas) readCounters(ctx context.Context, of snapshot.Records) (c snapshot.Counters, setBacks uint64,
	err error) {
	asked := time.Now()
	if c, err = snapshot.ReadCounters(ctx, d.conn, of); err != nil {
		return c, 0, err
	}
	return c, d.clock.observe(asked, c.Now, time.Now()), nil
}

// State reads the rollup log. Since the store's clock was found to be set back, it says so until something was
// committed that is later than the first reading from then on.
func (d *Deltas) State(ctx context.Context) (State, error) {
	asked := time.Now()
	state, err := ReadState(ctx, d.conn)
	if err != nil {
		return state, err
	}
	setBacks := d.clock.observe(asked, state.Now, time.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if setBacks > d.setBacks {
		d.setBacks, d.setBackN = setBacks, state.Committed
	}
	if state.Committed > d.setBackN {
		d.setBackN = 0
	}
	state.SetBack = state.SetBack || d.setBackN > 0
	return state, nil
}

// read reads a delta and caches it, also one that has too many rows.
func (d *Deltas) read(ctx context.Context, of snapshot.Records) (c Cached, err error) {
	if c.Counters, c.setBacks, err = d.readCounters(ctx, of); err != nil {
		return c, err
	}
	if c.State, err = d.State(ctx); err != nil {
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
	if last, _ := d.cached.Get(of.Place()); last.Delta != nil && c.State.SameRollup(last.State) &&
		last.since.After(since) && last.setBacks == c.setBacks {
		since, before = last.since, last.Delta
	}
	c.since = inserts.Oldest.Add(-d.Margin - time.Millisecond)
	c.Delta, err = ReadDelta(ctx, d.conn, of, since, before, d.Most)
	if err == nil {
		c.readAt = time.Now()
		owner, key := of.Place()
		d.cached.Put(owner, key, c, c.Delta.bytes())
	}
	return c, err
}
