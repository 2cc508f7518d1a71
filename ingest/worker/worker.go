// Package worker copies an operational database into the store continuously: whatever changes there
// is stored within seconds, and a full comparison from time to time finds what polling cannot see.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

// Options say what a worker does.
type Options struct {
	Source *postgres.Database
	Name   string      // of the source, under which its checkpoints are kept
	Conn   driver.Conn // migrated
	Logger *slog.Logger
	Status *Status
	// Owns says which organizations the store is to have, of all that the source has; nil for all.
	Owns func(schema.OrganizationID) bool
	// Epoch is one that grows with every change of what Owns says (checkpoint.Log).
	Epoch uint64
	// Arriving reports whether an organization is on its way into the store; nil for never. The error is ErrPlacement
	// where what Owns says is not so any more.
	Arriving func(context.Context) (bool, error)
	// Gate is that of the cell, nil where there are none. Run ends with a *write.MovedError or ErrPlacement when an
	// organization was, or is being, moved, and is to be called again with other Owns when that is over.
	Gate *cells.Gate

	PollInterval   time.Duration // between the end of one pass over the changes and the next
	Overlap        time.Duration // every pass reads again what changed so long before the last one
	ReconcileEvery time.Duration // 0 for never
	// Once ends a worker that makes no full comparisons when it has copied everything, and has rejected what breaks a
	// rule.
	Once          bool
	DeleteMissing bool // a reconcile takes out what the source no longer has, and no other source has
	// DeleteMissingShare is the largest part of a kind's rows that one reconcile may take out, 0 to 1 inclusive,
	// where that is more than a few: a source that was emptied by mistake must not empty the store.
	DeleteMissingShare float64
	OnReject           func(ingest.Reject) error
	Tracer             trace.Tracer // of passes that find changes, and of full comparisons
}

// maxReach is how far back rows are remembered that were copied, for passes that reach back for the sake of
// a transaction. It is also how far before its checkpoint a worker begins on a source that does
// not show all of its transactions, and how far before the source's clock if that is behind the checkpoint.
const maxReach = 10 * time.Minute

// Run copies until ctx is done, which is no failure, or Once ends it. Outages of either side are waited for; any
// other failure ends it.
func Run(ctx context.Context, o Options) error {
	err := run(ctx, o)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func run(ctx context.Context, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	w := newWorker(o)
	reached := func(err error) bool { return postgres.Retryable(err) && !postgres.UnknownHost(err) }
	if err := w.retry.DoIf(ctx, "check the source", reached, func() error { return o.Source.Check(ctx) }); err != nil {
		return fmt.Errorf("check the source: %w", err)
	}
	if err := w.advise(ctx); err != nil {
		return err
	}
	if err := w.retry.DoIf(ctx, "finish replacements", retryable, func() error { return w.finish(ctx) }); err != nil {
		return err
	}
	firstPass := make(chan struct{}, len(normalize.Kinds))
	for _, c := range w.copiers {
		group.Go(func() error { return c.run(ctx, firstPass) })
	}
	group.Go(func() error {
		for range normalize.Kinds {
			select {
			case <-firstPass:
			case <-ctx.Done():
				return nil
			}
		}
		if o.ReconcileEvery == 0 {
			return w.rejectKeyless(ctx)
		}
		return w.reconcileEvery(ctx)
	})
	return group.Wait()
}

// A worker is what the copiers and the reconcile share.
type worker struct {
	Options
	retry   write.Retry
	writer  *write.Writer
	copiers map[normalize.Kind]*copier
	list    *list
	// finishing are the worker's own replacements for those that it has tried to finish, by the numbers of these.
	finishing map[uint64]replacement
}

func newWorker(o Options) *worker {
	w := &worker{Options: o, finishing: map[uint64]replacement{}}
	w.retry = write.Retry{Logger: o.Logger, Count: o.Status.retried}
	w.writer, w.list = write.NewWriter(o.Conn, w.retry), w.newList()
	w.writer.Gate = o.Gate
	w.writer.LeftOut = func(kind normalize.Kind, n int) {
		o.Logger.Info("what purged people did before the purge stays out", "kind", kind, "records", n)
		o.Status.excluded(kind, n)
	}
	w.copiers = map[normalize.Kind]*copier{}
	for _, kind := range normalize.Kinds {
		w.copiers[kind] = newCopier(w, kind)
	}
	return w
}

// newLog returns the log of the store, in the worker's epoch.
func (w *worker) newLog() *checkpoint.Log {
	log := checkpoint.NewLog(w.Conn, w.retry)
	log.Epoch = w.Epoch
	return log
}

// owns reports whether the store is to have an organization.
func (w *worker) owns(o schema.OrganizationID) bool { return w.Owns == nil || w.Owns(o) }

// organizationOf is that of a record as it was read.
func organizationOf(r *source.Record) schema.OrganizationID {
	return schema.OrganizationID(r.Raw.Values[0])
}

// reading tries to read from the source until it answers.
func (w *worker) reading(ctx context.Context, what string, attempt func() error) error {
	err := w.retry.DoIf(ctx, what, postgres.Retryable, attempt)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
