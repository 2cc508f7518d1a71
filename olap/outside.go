package olap

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// Of more than maxOutside hashes none is cached: each statement computes them.
	maxOutside = 100_000
	// maxOutsideBytes bounds the hashes that are cached: those of 80 ranges with the most.
	maxOutsideBytes = 40 << 20
	outsideAge      = time.Minute
	// maxSince is how many records may be stored meanwhile, whose runs are all looked up. Of a month of ten million
	// records a year, 8,000 runs are outside the join window.
	maxSince = 5_000
)

// rangeKey is the same for queries of an organization with one range.
func rangeKey(r Request) cache.Key {
	return cache.KeyOf([]byte(r.OrganizationID), fmt.Append(nil, r.Query.Range.StartUTC.UnixMilli()),
		fmt.Append(nil, r.Query.Range.EndUTC.UnixMilli()))
}

// An outside has the runs outside the join window of a range (compile.RunsOutside), of all records stored until an
// instant, and the parts of those in the window. It never gets stale: the created_at of a run does not change, records
// do not change, and all runs of records that are stored later are looked up.
type outside struct {
	hashes  *ext.Table // nil if there are too many
	until   time.Time  // by the store's clock
	at      time.Time  // by this server's clock, not before
	records snapshot.Count
	merged  []string      // parts of the runs in the join window (snapshot.MergedParts)
	age     time.Duration // when the statement was planned
}

// valid reports whether the cached runs may be used with asOf: the store's clock was not set back since they were read,
// by which newer rows would seem older. They may not be used for pages of a continuation that began earlier.
func (o outside) valid(asOf time.Time) bool {
	return !asOf.Before(o.until.Add(o.age - snapshot.ClockMargin))
}

// bytes is about what the runs take in memory.
func (o outside) bytes() int {
	bytes := 0
	if o.hashes != nil {
		bytes += 5 * o.hashes.Block().Rows() // grown by a quarter at a time
	}
	for _, part := range o.merged {
		bytes += int(unsafe.Sizeof(part)) + allocated(len(part))
	}
	return bytes
}

// outsideRuns caches runs outside the join window. To find them takes a quarter of the time of a statement that needs
// the states of runs.
type outsideRuns struct {
	cached  *cache.Cache[outside]
	reading cache.Group[outside]
}

func newOutsideRuns() *outsideRuns {
	return &outsideRuns{cached: cache.New[outside](maxOutsideBytes, outsideAge)}
}

// outsideFacts reads the runs outside the join window, unless runs of the organization moved: one that was created in
// the window and does not count there any more would be missed.
func (e *Engine) outsideFacts(ctx context.Context, a *attempt, f *plan.Facts) error {
	moved, err := rollup.RunsMoved(ctx, e.conn, a.OrganizationID)
	if err != nil || moved {
		return err
	}
	o, err := e.outside.get(ctx, e, a)
	if err != nil || o.hashes == nil || !f.AsOf.IsZero() && !o.valid(f.AsOf) {
		return err
	}
	a.outside = o
	f.OutsideSince, f.MergedParts = o.until.Add(-snapshot.ClockMargin), o.merged
	return nil
}

func (r *outsideRuns) get(ctx context.Context, e *Engine, a *attempt) (outside, error) {
	owner, of := string(a.OrganizationID), rangeKey(a.Request)
	if o, known := r.cached.Get(owner, of); known {
		stored, err := snapshot.ReadInsertCounter(ctx, e.conn, a.records)
		o.age = time.Since(o.at)
		if err != nil || stored.Records.Since(o.records) <= maxSince && o.valid(stored.Now) {
			return o, err
		}
	}
	return r.reading.Do(ctx, of, func(ctx context.Context) (outside, error) {
		o, err := e.readOutside(ctx, a)
		if err == nil {
			r.cached.Put(owner, of, o, o.bytes())
		}
		return o, err
	})
}

// readOutside reads them when every insert that began before their instant has ended.
func (e *Engine) readOutside(ctx context.Context, a *attempt) (o outside, err error) {
	if o.until, err = e.boundaries.PageBoundary(ctx); err != nil {
		return o, err
	}
	stored, err := snapshot.ReadInsertCounter(ctx, e.conn, a.records)
	if err != nil {
		return o, err
	}
	o.at, o.records = time.Now(), stored.Records
	start, last := compile.JoinWindow(a.Query.Range)
	if o.merged, err = snapshot.MergedParts(ctx, e.conn, start, last); err != nil {
		return o, err
	}
	in := compile.Input{Plan: a.needs.Plan(plan.Facts{}), Organization: a.OrganizationID}
	found, err := exec.Run(ctx, e.conn, compile.RunsOutside(in, maxOutside+1), uuid.New(), comment(a.Request, nil))
	if err != nil || len(found.Rows) > maxOutside {
		return o, err
	}
	if o.hashes, err = ext.NewTable(schema.TableRunsOutside, ext.Column("run_hash", "UInt32")); err != nil {
		return o, err
	}
	for _, row := range found.Rows {
		if err := o.hashes.Append(uint32(row[0].Count())); err != nil {
			return outside{}, err
		}
	}
	return o, nil
}
