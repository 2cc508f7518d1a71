package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
)

type workerCmd struct {
	Run    workerRunCmd    `cmd:"" default:"withargs" help:"Copy until a signal. 'runlens worker' does the same."`
	Status workerStatusCmd `cmd:"" help:"Show the state of a running worker."`
	Reset  workerResetCmd  `cmd:"" help:"Delete the checkpoint of one kind of records."`
	Layout workerLayoutCmd `cmd:"" help:"Print the tables that a worker reads by default."`
}

func (workerCmd) Help() string {
	return workerHelp + `

Example:
  runlens worker --source postgres://reader@db.internal/production --data-dir ./data
  runlens worker status`
}

type workerRunCmd struct {
	storeFlags
	databaseFlags
	adminFlags
	AdminListen string `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9091" placeholder:"HOST:PORT" help:"@worker_listen"`
	Rejects     string `placeholder:"FILE" help:"Append rejected records to FILE, one JSON object a line."`

	PollInterval   time.Duration `env:"RUNLENS_POLL_INTERVAL" default:"1s" help:"@poll_interval"`
	Overlap        time.Duration `env:"RUNLENS_OVERLAP" default:"10s" help:"@overlap"`
	ReconcileEvery time.Duration `env:"RUNLENS_RECONCILE_EVERY" default:"1h" help:"@reconcile_every"`
	DeleteMissing  bool          `env:"RUNLENS_DELETE_MISSING" help:"@delete_missing"`

	DeleteMissingShare float64 `env:"RUNLENS_DELETE_MISSING_SHARE" default:"0.1" help:"@delete_missing_share"`
}

const workerHelp = `Copies agents, runs and attribution records from PostgreSQL: first everything, then changes.
You can stop and start it at any time: it continues from its checkpoint. Several workers on one source do no harm.
It finds changes by updated_at. From time to time it compares source and store in full. The source is right: what
polling missed is copied again. Rows deleted at the source stay, unless --delete-missing.
It waits for outages of PostgreSQL and ClickHouse.`

func (workerRunCmd) Help() string {
	return workerHelp + `

Example:
  runlens worker run --source postgres://reader@db.internal/production --mapping tables.sql`
}

// check is what is wrong with the flags.
func (c workerRunCmd) check() error {
	switch {
	case c.Source == "":
		return errors.New("--source is missing: the operational database, such as postgres://user@host:5432/database")
	case c.PollInterval <= 0 || c.Overlap < 0 || c.ReconcileEvery < 0:
		return errors.New("--poll-interval must be greater than 0, --overlap and --reconcile-every at least 0")
	case !(c.DeleteMissingShare >= 0 && c.DeleteMissingShare <= 1): // nor is it no number
		return errors.New("--delete-missing-share must be between 0 and 1")
	}
	return nil
}

func (c workerRunCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	workerMemory.bound()
	ctx, stop := untilSignal(ctx)
	defer stop()
	stopped := func(err error) error { // a signal before anything is copied is no failure
		if err == nil || ctx.Err() == nil {
			return err
		}
		logger.Info("stopped before anything was copied", "error", err)
		return nil
	}
	tracer, endTracing, err := openTracing(ctx, "runlens-worker", logger)
	if err != nil {
		return err
	}
	defer endTracing()
	mapping, err := c.databaseFlags.mapping(ctx)
	if err != nil {
		return stopped(err)
	}
	rejects, err := within(ctx, openingRejects, nil,
		func(context.Context) (rejects, error) {
			if c.Rejects == "" {
				return &loggedRejects{logger: logger}, nil
			}
			return appendRejects(c.Rejects, io.err)
		})
	if err != nil {
		return stopped(usageError{err})
	}
	defer rejects.Close()
	// It runs from here on: it waits for a store that does not answer yet.
	managed(ctx, nil, logger)
	defer stopping(ctx, logger)()
	p, err := c.placePatiently(ctx, logger)
	if err != nil {
		return stopped(err)
	}
	defer p.Close()
	var copying []*cellWorker
	for _, name := range p.names {
		database, err := c.databaseFlags.openMapped(ctx, mapping)
		if err != nil {
			return stopped(err)
		}
		defer database.Close()
		copying = append(copying, newCellWorker(name, p.flags[name], database, tracer, logger))
	}
	adminServer, err := c.adminFlags.open(c.AdminListen, c.DataDir, logger)
	if err != nil {
		return err
	}
	if adminServer != nil {
		defer adminServer.Close()
		adminServer.Start(workerAdmin(copying), func(err error) {
			if !errors.Is(err, http.ErrServerClosed) {
				logger.Error("the admin address ended", "error", err)
			}
		})
	}
	shared := &sharedRejects{rejects: rejects}
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range copying {
		group.Go(func() error { return stopped(one.run(ctx, c, shared)) })
	}
	return group.Wait()
}

type workerResetCmd struct {
	storeFlags
	databaseFlags
	Kind string `arg:"" enum:"agent,run,attribution" help:"The kind of records: agent, run or attribution."`
}

func (workerResetCmd) Help() string {
	return `The next worker then copies the kind from the beginning. That changes nothing that is right.
Stop the worker first: a running one saves its checkpoint again.

Example:
  runlens worker reset run --source postgres://reader@db.internal/production`
}

func (c workerResetCmd) Run(ctx context.Context, logger *slog.Logger, streams streams) error {
	if c.Source == "" {
		return usageError{errors.New("--source is missing: the operational database that was copied")}
	}
	database, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer database.Close()
	return c.eachStore(ctx, logger, streams, func(_ storeFlags, store *clickhouse.Server) error {
		retry := write.Retry{Logger: logger, Patience: openPatience}
		found, err := worker.Reset(ctx, store.Conn(), retry, database.Name(), normalize.Kind(c.Kind))
		if err != nil {
			return err
		}
		what := "cleared; the next worker copies these records from the beginning"
		if !found {
			what = "there was none"
		}
		_, err = fmt.Fprintf(streams.out, "checkpoint of %s records of %s: %s\n", c.Kind, database.Name(), what)
		return err
	})
}

type workerLayoutCmd struct {
	Mapping bool `help:"Print the mapping file of the default tables."`
}

func (workerLayoutCmd) Help() string {
	return `Prints SQL. For other tables, save the mapping, change its SELECTs and give it to 'runlens worker --mapping'.

Example:
  runlens worker layout
  runlens worker layout --mapping`
}

func (c workerLayoutCmd) Run(streams streams) error {
	text := postgres.Layout
	if c.Mapping {
		text = postgres.DefaultMapping
	}
	_, err := fmt.Fprint(streams.out, text)
	return err
}
