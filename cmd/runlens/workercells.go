package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

// A cellWorker copies into one cell the organizations that are in it. It shares nothing with those of other cells: it
// has its own connections to the source and its own checkpoints, so that a cell that is away holds up nobody else.
type cellWorker struct {
	name     string // oneCell for the only one
	flags    storeFlags
	database *postgres.Database
	tracer   trace.Tracer
	logger   *slog.Logger
	status   *worker.Status
	store    atomic.Pointer[clickhouse.Server] // nil until it is open
}

func newCellWorker(
	name string, flags storeFlags, database *postgres.Database, tracer trace.Tracer, logger *slog.Logger,
) *cellWorker {
	return &cellWorker{name: name, flags: flags, database: database, tracer: tracer, logger: loggerOf(name, logger),
		status: worker.NewStatus(time.Now)}
}

// run copies until ctx is done.
func (w *cellWorker) run(ctx context.Context, c workerRunCmd, rejects *sharedRejects) error {
	store, err := openPatiently(ctx, w.flags, w.logger, 0)
	if err != nil {
		return err
	}
	defer store.Close()
	glanceAt(ctx, store, w.logger)
	w.store.Store(store)
	options := worker.Options{
		Source: w.database, Name: w.database.Name(), Conn: store.Conn(), Logger: w.logger, Status: w.status,
		Owns: w.flags.owns(), PollInterval: c.PollInterval, Overlap: c.Overlap, ReconcileEvery: c.ReconcileEvery,
		DeleteMissing: c.DeleteMissing, DeleteMissingShare: c.DeleteMissingShare, OnReject: rejects.add,
		Tracer: w.tracer,
	}
	if w.flags.directory == nil {
		return worker.Run(ctx, options)
	}
	options.Gate = w.flags.gate(store.Conn())
	return w.runPlaced(ctx, options)
}

// runPlaced copies what is in the cell, and begins again, from its checkpoint, when something else is.
func (w *cellWorker) runPlaced(ctx context.Context, options worker.Options) error {
	for ctx.Err() == nil {
		told, err := w.writable(ctx, options.Conn)
		if err != nil {
			return err
		}
		options.Owns = func(o schema.OrganizationID) bool { return told.Reads(w.name, o) }
		options.Epoch = told.Version()
		options.Arriving = func(ctx context.Context) (bool, error) {
			now, err := w.told(ctx, options.Conn)
			if err == nil && !told.SameIn(w.name, now) {
				err = worker.ErrPlacement
			}
			return now.Arriving(), err
		}
		running, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			for snapshot.Pause(running, placementPoll) == nil {
				now, err := w.told(running, options.Conn)
				if err == nil && !told.SameIn(w.name, now) {
					w.logger.Info("organizations were moved; beginning again from the checkpoint")
					cancel()
				}
			}
		})
		err = worker.Run(running, options)
		cancel()
		watching.Wait()
		var moved *write.MovedError
		if err != nil && !errors.As(err, &moved) && !errors.Is(err, worker.ErrPlacement) {
			return err
		}
	}
	return nil
}

// placementPoll is how often it is read what is in the cell.
const placementPoll = time.Second

// writable waits until nothing is on its way out of the cell, or into it without being open, and returns what is there.
func (w *cellWorker) writable(ctx context.Context, conn driver.Conn) (cells.Told, error) {
	retry := write.Retry{Logger: w.logger}
	for waited := false; ; {
		var told cells.Told
		err := retry.Do(ctx, "find out where organizations are", func() (err error) {
			told, err = w.told(ctx, conn)
			return err
		})
		if err != nil || told.Writable(w.name) {
			return told, err
		}
		if err := awaitMove(ctx, &waited, w.logger); err != nil {
			return told, err
		}
	}
}

// told is what the cell's own store says now.
func (w *cellWorker) told(ctx context.Context, conn driver.Conn) (cells.Told, error) {
	return w.flags.directory.Told(ctx, w.name, conn, time.Now())
}

// sharedRejects are the rejects of several workers.
type sharedRejects struct {
	mu    sync.Mutex
	count int
	rejects
}

func (r *sharedRejects) add(reject ingest.Reject) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	return r.AddNow(reject)
}

// placePatiently finds out where organizations are, however long the cells are away.
func (f storeFlags) placePatiently(ctx context.Context, logger *slog.Logger) (*placed, error) {
	return patiently(ctx, write.Retry{Logger: logger}, "find out where organizations are", func() (*placed, error) {
		return f.place(ctx, logger)
	})
}

// workerAdmin is the status besides what every admin address has.
func workerAdmin(copying []*cellWorker) admin.Content {
	content := admin.Content{
		Ready: func(context.Context) error {
			var missing []error
			for _, w := range copying {
				missing = append(missing, ofCell(w.name, w.status.Ready()))
			}
			return errors.Join(missing...)
		},
		Metrics: []prometheus.Collector{buildInfo()},
		More: map[string]http.Handler{"GET /status": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.MarshalWrite(w, statusOf(copying), json.Deterministic(true))
		})},
	}
	for _, w := range copying {
		for _, part := range []prometheus.Collector{w.status, workerStore{w}} {
			content.Metrics = append(content.Metrics, metricsOf(w.name, part))
		}
	}
	return content
}

// statusOf is the report of a worker, or those of several by the names of their cells.
func statusOf(copying []*cellWorker) cellReports {
	if copying[0].name == oneCell {
		report := copying[0].status.Report()
		return cellReports{Report: &report}
	}
	reports := cellReports{Cells: map[string]worker.Report{}}
	for _, w := range copying {
		reports.Cells[w.name] = w.status.Report()
	}
	return reports
}

// cellReports are what GET /status answers: the report of the only worker, or those by cell.
type cellReports struct {
	*worker.Report
	Cells map[string]worker.Report `json:"cells,omitempty"`
}

// A workerStore is a prometheus.Collector of the store of a worker, once it is open.
type workerStore struct{ *cellWorker }

// Describe sends what there is to collect.
func (workerStore) Describe(out chan<- *prometheus.Desc) { (*clickhouse.Server)(nil).Describe(out) }

// Collect sends what the store has.
func (w workerStore) Collect(out chan<- prometheus.Metric) {
	if store := w.cellWorker.store.Load(); store != nil {
		store.Collect(out)
	}
}
