package worker

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

const (
	// pageRows bounds the records of one batch, and so the worker's memory: those that break no rule are small.
	pageRows = 20_000
	// maxRejectBytes bounds the rejects that are held until a batch is stored: texts of a source may have any length.
	maxRejectBytes = 10 << 20
)

// A copier copies the changes of one kind. It reads pages in the order of (updated_at, id,
// organization); the first pass over an empty store is the full copy. A checkpoint moves when
// ClickHouse has acknowledged everything up to it.
type copier struct {
	*worker
	kind       normalize.Kind
	log        *checkpoint.Log
	normalizer *normalize.Normalizer
	horizon    horizon
	clock      snapshot.ClockWatch // of the source
	saved      position
	known      bool   // the store has a checkpoint
	warned     string // what was last said to keep rows from being certain

	// inFlight is locked for reading from before a page is read from the source until it is stored, so that who locks
	// it for writing knows that no rows are on their way that were read before.
	inFlight sync.RWMutex
	recent   *recent // changed by the copier under a reading lock, by others under a writing one

	timeless, keyless rejectedOnce // used by the copier in its first pass, and by what begins after it
}

// A position is what a checkpoint of a worker contains.
type position struct {
	Mapping string `json:"mapping"` // fingerprint of the SELECT that was read
	// Certain is the instant before which no row has changed that was not stored; zero when nothing is certain. Until
	// is the same without regard to transactions whose begin is unknown.
	Certain time.Time `json:"certain_until"`
	Until   time.Time `json:"until"`
}

// checkpointName names the checkpoint of one kind of a source.
func checkpointName(source string, kind normalize.Kind) string {
	return schema.CheckpointOfWorkers + source + ":" + string(kind)
}

func newCopier(w *worker, kind normalize.Kind) *copier {
	return &copier{
		worker: w, kind: kind, log: w.newLog(), normalizer: normalize.NewNormalizer(), recent: newRecent(),
	}
}

func (c *copier) run(ctx context.Context, firstPass chan<- struct{}) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	for first := true; ; first = false {
		asOf, err := c.passOfOneServer(ctx, first)
		if err != nil {
			return err
		}
		if first {
			if err := c.copyTimeless(ctx); err != nil {
				return err
			}
		}
		certain, waitsFor := c.horizon.oldest(everything)
		c.Status.passed(c.kind, asOf, certain, waitsFor)
		if first {
			c.Logger.Info("caught up", "kind", c.kind)
			firstPass <- struct{}{}
			if c.Once {
				return nil
			}
		}
		if snapshot.Pause(ctx, c.PollInterval) != nil {
			return ctx.Err()
		}
	}
}

// passOfOneServer makes a pass that one server answers: what is in progress at one says nothing of records of another.
// If another one answers, the pass begins again, from the checkpoint, as the first one of a worker does. It returns the
// instant whose state it has seen.
func (c *copier) passOfOneServer(ctx context.Context, first bool) (asOf time.Time, err error) {
	start := first
	err = c.retry.DoIf(ctx, "a pass over the "+string(c.kind)+" records of one server", postgres.IsServer, func() error {
		ctx := postgres.OneServer(ctx)
		var from time.Time
		if from, asOf, err = c.passStart(ctx, start); err != nil {
			return err
		}
		if first && start {
			c.Logger.Info("copying", "kind", c.kind, "changed_after", from)
		}
		if err = c.pass(ctx, from); postgres.IsServer(err) {
			start, c.horizon, c.clock = true, horizon{}, snapshot.ClockWatch{}
		}
		return err
	})
	return asOf, err
}

// pass copies everything that changed at an instant or later.
func (c *copier) pass(ctx context.Context, from time.Time) error {
	stored := 0
	for at := (postgres.Key{At: from}); ; {
		last, n, err := c.page(ctx, c.Source.Changed, at)
		if err != nil {
			return err
		}
		stored += n
		if last == nil {
			break
		}
		at = *last
		// The rest of the pass is still to be read.
		if err := c.save(ctx, n, earlier(at.At, c.horizon.until()), earlier(at.At, c.horizon.certain())); err != nil {
			return err
		}
	}
	return c.save(ctx, stored, c.horizon.until(), c.horizon.certain())
}

// A reader reads a page of the source: Changed or Timeless of a postgres.Database.
type reader func(ctx context.Context, kind normalize.Kind, after postgres.Key, limit int,
	visit func(*source.Record, postgres.Key) error) (int, error)

// page copies one page and returns its last key, or nil when nothing is after it, and how many records were new.
func (c *copier) page(ctx context.Context, read reader, after postgres.Key) (
	last *postgres.Key, stored int, err error) {
	c.inFlight.RLock()
	defer c.inFlight.RUnlock()
	var page page
	var n int
	var failure error // of adding, which is not the source's
	ctx, span := c.Tracer.Begin(ctx, "worker batch")
	defer func() {
		if len(page.versions) > 0 || err != nil && ctx.Err() == nil { // a poll that finds nothing is no trace
			trace.End(span, err)
		}
	}()
	err = c.reading(ctx, "read changes of "+string(c.kind)+" records", func() (err error) {
		page.clear(after)
		n, err = read(ctx, c.kind, after, pageRows, func(r *source.Record, key postgres.Key) error {
			failure = c.add(&page, r, key)
			return failure
		})
		if failure != nil {
			return nil
		}
		return err
	})
	if err = cmp.Or(err, failure); err == nil {
		trace.Describe(ctx, func() []attribute.KeyValue { return page.attributes(c.kind) })
		err = c.store(ctx, &page)
	}
	if err != nil || n < pageRows {
		return nil, len(page.versions), err
	}
	return &page.last, len(page.versions), nil
}

// save moves the checkpoint forward, if anything was stored.
func (c *copier) save(ctx context.Context, stored int, until, certain time.Time) error {
	if stored == 0 || !until.After(c.saved.Until) && !certain.After(c.saved.Certain) {
		return nil
	}
	next := c.saved
	if until.After(next.Until) {
		next.Until = until
	}
	if certain.After(next.Certain) {
		next.Certain = certain
	}
	return c.keep(ctx, next)
}

// keep saves a checkpoint.
func (c *copier) keep(ctx context.Context, next position) error {
	if err := c.log.Save(ctx, checkpointName(c.Name, c.kind), next); err != nil {
		return err
	}
	c.saved, c.known = next, true
	c.Status.checkpoint(c.kind, next)
	return nil
}

// A page is what one read of the source brought that is new.
type page struct {
	write.Batch
	versions []version // of all new records, rejected ones too
	rejects  []ingest.Reject
	once     []uint64 // hashes of the rejects that have no time
	last     postgres.Key

	rejected    int // rejects that are no longer held included
	rejectBytes int // of rejects
}

func (p *page) clear(at postgres.Key) {
	p.Clear()
	p.versions, p.rejects, p.once, p.last = p.versions[:0], p.rejects[:0], p.once[:0], at
	p.rejected, p.rejectBytes = 0, 0
}

func (c *copier) add(p *page, r *source.Record, key postgres.Key) error {
	p.last = key
	if !c.owns(organizationOf(r)) {
		return nil
	}
	v := version{key, hashRecord(r)}
	if c.recent.has(v) {
		return nil
	}
	p.versions = append(p.versions, v)
	fault := p.Add(c.normalizer, &r.Raw)
	if fault == nil {
		return nil
	}
	reject := c.reject(r, fault)
	p.rejects = append(p.rejects, reject)
	p.rejected++
	if p.rejectBytes += len(reject.Record); key.Timeless() {
		p.once = append(p.once, hash(key))
	}
	if p.rejectBytes > maxRejectBytes {
		return c.rejectAll(p)
	}
	return nil
}

// rejectAll rejects what is held of a page. A page that is read again after a failure is rejected again.
func (c *copier) rejectAll(p *page) error {
	for _, reject := range p.rejects {
		if err := c.OnReject(reject); err != nil {
			return err
		}
	}
	clear(p.rejects)
	p.rejects, p.rejectBytes = p.rejects[:0], 0
	return nil
}

func (c *copier) reject(r *source.Record, fault error) ingest.Reject {
	return ingest.NewReject("postgres:"+string(c.kind), r, fault)
}

// store writes a page, and then takes note of it: in this order, whatever happens in between.
func (c *copier) store(ctx context.Context, p *page) error {
	if len(p.versions) == 0 {
		return nil
	}
	if !c.known { // others are to know that the source has records of the kind
		if err := c.keep(ctx, c.saved); err != nil {
			return err
		}
	}
	if err := c.write(ctx, &p.Batch); err != nil {
		return err
	}
	if err := c.rejectAll(p); err != nil {
		return err
	}
	for _, row := range p.once {
		c.timeless.add(row)
	}
	c.recent.add(p.versions)
	c.Status.stored(c.kind, p.Len(), p.rejected)
	return nil
}
