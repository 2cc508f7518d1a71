package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/moment"
)

// pageRows bounds the records of one batch, and so the worker's memory.
const pageRows = 20_000

// A copier copies the changes of one kind. It reads pages in the order of (updated_at, id,
// organization); the first pass over an empty store is the full copy. A checkpoint moves when
// ClickHouse has acknowledged everything up to it.
type copier struct {
	*worker
	kind       normalize.Kind
	log        *checkpoint.Log
	name       string
	normalizer *normalize.Normalizer
	recent     *recent
	saved      postgres.Key
}

func newCopier(w *worker, kind normalize.Kind) *copier {
	return &copier{
		worker: w, kind: kind, log: checkpoint.NewLog(w.Conn, w.retry), name: fmt.Sprintf("worker:%s:%s", w.Name, kind),
		normalizer: normalize.NewNormalizer(), recent: newRecent(),
	}
}

func (c *copier) run(ctx context.Context, firstPass chan<- struct{}) error {
	if _, _, err := c.log.Load(ctx, c.name, &c.saved); err != nil {
		return err
	}
	c.Logger.Info("copying", "kind", c.kind, "changed_after", c.saved.At)
	// What was committed late before the last end carries times before the checkpoint.
	from := c.saved
	if from.At.After(time.Time{}.Add(maxReach + c.Overlap)) {
		from = postgres.Key{At: from.At.Add(-maxReach - c.Overlap)}
	}
	for first := true; ; first = false {
		seen, err := c.sees(ctx)
		if err != nil {
			return err
		}
		if first {
			c.recent.from = seen.Add(-c.Overlap)
		}
		if err := c.pass(ctx, from); err != nil {
			return err
		}
		if first {
			c.Logger.Info("caught up", "kind", c.kind)
			firstPass <- struct{}{}
		}
		from = postgres.Key{At: seen.Add(-c.Overlap)}
		c.recent.forget(from.At)
		if moment.Pause(ctx, c.PollInterval) != nil {
			return ctx.Err()
		}
	}
}

// sees returns up to when a pass that begins now will have seen all changes, so that the next one begins
// there. A transaction's changes carry times before its commit: while one is open, nothing behind
// its begin is certain. The source's clock is asked, because a row may carry a time in the future,
// which must not hide what comes after.
func (c *copier) sees(ctx context.Context) (time.Time, error) {
	var now, oldest time.Time
	err := c.reading(ctx, "ask the source for its clock", func() (err error) {
		now, oldest, err = c.Source.Clock(ctx)
		return err
	})
	if oldest.After(now) {
		return now, err
	}
	if reach := now.Add(-maxReach); oldest.Before(reach) {
		return reach, err
	}
	return oldest, err
}

// pass copies everything behind a key.
func (c *copier) pass(ctx context.Context, from postgres.Key) error {
	began := time.Now()
	for at := from; ; {
		var page page
		var n int
		err := c.reading(ctx, "read changes of "+string(c.kind)+" records", func() (err error) {
			page.clear(at)
			n, err = c.Source.Changed(ctx, c.kind, at, pageRows, func(r *source.Record, key postgres.Key) error {
				c.add(&page, r, key)
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
		if err := c.store(ctx, &page); err != nil {
			return err
		}
		at = page.last
		if n < pageRows {
			c.Status.passed(c.kind, began)
			return nil
		}
	}
}

// A page is what one read of the source brought that is new.
type page struct {
	write.Batch
	keys    []postgres.Key // of all new records, rejected ones too
	rejects []ingest.Reject
	last    postgres.Key
}

func (p *page) clear(at postgres.Key) {
	p.Clear()
	p.keys, p.rejects, p.last = p.keys[:0], p.rejects[:0], at
}

func (c *copier) add(p *page, r *source.Record, key postgres.Key) {
	p.last = key
	if c.recent.has(key) {
		return
	}
	p.keys = append(p.keys, key)
	if err := p.Add(c.normalizer, &r.Raw); err != nil {
		p.rejects = append(p.rejects, ingest.NewReject("postgres:"+string(c.kind), r, err))
	}
}

// store writes a page, and then takes note of it: in this order, whatever happens in between.
func (c *copier) store(ctx context.Context, p *page) error {
	if len(p.keys) == 0 {
		return nil
	}
	if err := c.writer.Write(ctx, &p.Batch); err != nil {
		return err
	}
	for _, reject := range p.rejects {
		if err := c.OnReject(reject); err != nil {
			return err
		}
	}
	if p.last.At.After(c.saved.At) || p.last.At.Equal(c.saved.At) && p.last.ID > c.saved.ID {
		if err := c.log.Save(ctx, c.name, p.last); err != nil {
			return err
		}
		c.saved = p.last
	}
	c.recent.add(p.keys)
	c.Status.stored(c.kind, p.Len(), len(p.rejects))
	return nil
}
