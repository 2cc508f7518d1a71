package rollup

import (
	"context"
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

// A Cached is a delta with the snapshot that it completes: it is right as long as a later one is the same, with the
// same rollup (snapshot.Snapshot.SameRollup). What is written to the log from then on, before a statement has its own
// snapshots, makes the statement fail (schema.RollupUnchanged).
type Cached struct {
	Snapshot snapshot.Snapshot // of before the delta was read, with the rollup log
	Delta    *Delta            // nil where it could not be read apart from a statement
	since    time.Time         // what the delta lacks was stored after it
	readAt   time.Time
}

// Deltas caches deltas by organization and source, and reads what was stored since.
type Deltas struct {
	conn    driver.Conn
	view    *snapshot.View
	cached  *cache.Cache[Cached]
	reading cache.Group[Cached]

	// IdleFor and Margin are idleFor and snapshot.ClockMargin but for tests.
	IdleFor time.Duration
	Margin  time.Duration
}

// NewDeltas returns Deltas that have cached nothing, of the store of a view.
func NewDeltas(conn driver.Conn, view *snapshot.View) *Deltas {
	return &Deltas{
		conn: conn, view: view, cached: cache.New[Cached](maxDeltas, deltaAge),
		IdleFor: idleFor, Margin: snapshot.ClockMargin,
	}
}

// Get returns the delta of an organization's records, with everything that was acknowledged before the call, and a
// snapshot that was taken since. The delta is nil where a statement has to compute it inline. onlyEmpty says that the
// query cannot use the rows of a delta, only that it has none.
//
//  1. Take a snapshot. Where it is the one of the cached delta, that is the answer.
//  2. Read the delta again, once for all queries that need it meanwhile, unless only an empty one is of use and rows
//     are arriving. If the rollup is the one that the cached rows complete, they stay valid, and only what was stored
//     since is read. Both logs say so, each of them read by one statement. While a refresh batch is in progress there
//     is no delta: what the batch writes would count twice.
//
// Where the store's clock was set back, rows that are stored from then on seem older than those before. What is cached
// is not used any more, nor is the rollup, until a refresher has moved the watermark back.
func (d *Deltas) Get(ctx context.Context, of snapshot.Records, onlyEmpty bool) (Cached, error) {
	last, known := d.cached.Get(of.Place())
	if known {
		now, err := d.view.Take(ctx, 0, of.Organization)
		if err != nil {
			return Cached{}, err
		}
		if last.Snapshot.SameRollup(now, of) {
			now.Log = last.Snapshot.Log
			last.Snapshot = now
			return last, nil
		}
		if last.Delta == nil && time.Since(last.readAt) < backOff || onlyEmpty && d.arriving(now, of) {
			return d.None(ctx, of)
		}
	}
	_, key := of.Place()
	return d.reading.Do(ctx, key, func(ctx context.Context) (Cached, error) { return d.read(ctx, of, onlyEmpty) })
}

// arriving reports whether rows are arriving, so that a delta is not empty.
func (d *Deltas) arriving(now snapshot.Snapshot, of snapshot.Records) bool {
	return now.Idle(of.Organization) < d.IdleFor
}

// None is a snapshot without a delta.
func (d *Deltas) None(ctx context.Context, of snapshot.Records) (c Cached, err error) {
	c.Snapshot, err = d.view.Take(ctx, snapshot.RollupLog, of.Organization)
	return c, err
}

// Forget makes the next query read the delta of some records again.
func (d *Deltas) Forget(of snapshot.Records) {
	owner, key := of.Place()
	d.cached.Put(owner, key, Cached{}, 0)
}

// Len is the number of rows of the cached delta; -1 where there is none.
func (d *Deltas) Len(of snapshot.Records) int {
	if last, known := d.cached.Get(of.Place()); known && last.Delta != nil {
		return last.Delta.Len()
	}
	return -1
}

// read reads a delta and caches it, also one that has too many rows.
func (d *Deltas) read(ctx context.Context, of snapshot.Records, onlyEmpty bool) (c Cached, err error) {
	c.Snapshot, err = d.view.Take(ctx, snapshot.InFlight|snapshot.RollupLog, of.Organization)
	if err != nil {
		return c, err
	}
	now := c.Snapshot.For(of.Organization) // which may be kept
	c.Snapshot = now
	since := now.Log.Watermark(of)
	if since.IsZero() || now.Log.Refreshing || onlyEmpty && d.arriving(now, of) {
		return c, nil
	}
	var before *Delta
	if last, _ := d.cached.Get(of.Place()); last.Delta != nil && last.since.After(since) &&
		now.Log.SameRollup(last.Snapshot.Log) {
		since, before = last.since, last.Delta
	}
	c.since = now.Oldest.Add(-d.Margin - time.Millisecond)
	c.Delta, err = ReadDelta(ctx, d.conn, of, since, before, maxDelta)
	if err == nil {
		c.readAt = time.Now()
		owner, key := of.Place()
		d.cached.Put(owner, key, c, c.Delta.bytes())
	}
	return c, err
}
