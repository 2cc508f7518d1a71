package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
)

type workerCmd struct {
	Run    workerRunCmd    `cmd:"" default:"withargs" help:"Copy until a signal ends it. This is what 'runlens worker' does."`
	Status workerStatusCmd `cmd:"" help:"Show how a running worker does."`
	Reset  workerResetCmd  `cmd:"" help:"Forget how far one kind of records was copied."`
	Layout workerLayoutCmd `cmd:"" help:"Print the tables that a worker reads by default, or with --mapping the SELECTs to change for others."`
}

func (workerCmd) Help() string {
	return `Copies agents, runs and attribution records from PostgreSQL: first everything, then what changes, within seconds. It can be stopped and started at any time and continues where the store has everything; several workers on one source do no harm.
Changes are found by updated_at. From time to time source and store are compared in full; what polling could not see is copied again, and the source is right. Rows deleted at the source stay, unless --delete-missing. Outages of PostgreSQL and ClickHouse are waited for.

Example:
  runlens worker --source postgres://reader@db.internal/production --data-dir ./data
  runlens worker status`
}

type workerRunCmd struct {
	storeFlags
	databaseFlags
	adminFlags
	AdminListen    string        `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9091" placeholder:"HOST:PORT" help:"Address of health, status, metrics and profiling (${default}); off disables it."`
	PollInterval   time.Duration `env:"RUNLENS_POLL_INTERVAL" default:"1s" placeholder:"DURATION" help:"Pause between two looks for changes (${default})."`
	Overlap        time.Duration `env:"RUNLENS_OVERLAP" default:"10s" placeholder:"DURATION" help:"Every look reaches back so far, for changes that were committed late (${default})."`
	ReconcileEvery time.Duration `env:"RUNLENS_RECONCILE_EVERY" default:"1h" placeholder:"DURATION" help:"Pause between two full comparisons (${default}); 0 for none."`
	DeleteMissing  bool          `env:"RUNLENS_DELETE_MISSING" help:"A full comparison deletes what the source no longer has."`

	DeleteMissingShare float64 `env:"RUNLENS_DELETE_MISSING_SHARE" default:"0.1" placeholder:"SHARE" help:"With --delete-missing: delete nothing of a kind when more than this share of its rows (${default}) and more than 100 are missing."`

	Rejects string `placeholder:"FILE" help:"Append rejected records to FILE, one JSON object a line."`
}

func (c workerRunCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if c.Source == "" {
		return usageError{errors.New("--source is missing: the operational database, such as postgres://user@host:5432/database")}
	}
	if c.PollInterval <= 0 || c.Overlap < 0 || c.ReconcileEvery < 0 {
		return usageError{errors.New("--poll-interval must be greater than 0, --overlap and --reconcile-every at least 0")}
	}
	if err := refuseInputs("--rejects", c.Rejects, nil, c.Mapping, c.EngineLib); err != nil {
		return err
	}
	if c.DeleteMissingShare < 0 || c.DeleteMissingShare > 1 {
		return usageError{errors.New("--delete-missing-share must be between 0 and 1")}
	}
	debug.SetMemoryLimit(ingestMemoryBytes)
	ctx, stop := untilSignal(ctx)
	defer stop()
	database, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer database.Close()
	rejects, err := appendRejects(c.Rejects, io.err)
	if err != nil {
		return usageError{err}
	}
	defer rejects.close()
	store, err := openPatiently(ctx, c.storeFlags, logger, 0)
	if ctx.Err() != nil && err != nil {
		logger.Info("stopped before the store was open", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer store.Close()
	status := worker.NewStatus(time.Now)
	adminServer, err := c.adminFlags.open(c.AdminListen, logger)
	if err != nil {
		return err
	}
	if adminServer != nil {
		defer adminServer.Close()
		adminServer.Start(workerAdmin(status), func(err error) {
			if !errors.Is(err, http.ErrServerClosed) {
				logger.Error("the admin address ended", "error", err)
			}
		})
	}
	return worker.Run(ctx, worker.Options{
		Source: database, Name: database.Name(), Conn: store.Conn(), Logger: logger, Status: status,
		PollInterval: c.PollInterval, Overlap: c.Overlap, ReconcileEvery: c.ReconcileEvery,
		DeleteMissing: c.DeleteMissing, DeleteMissingShare: c.DeleteMissingShare,
		OnReject: rejects.addNow,
	})
}

// workerAdmin is the status besides what every admin address has. A worker is ready once it has
// caught up with its source.
func workerAdmin(status *worker.Status) admin.Content {
	return admin.Content{
		Ready: func(context.Context) error {
			for kind, k := range status.Report().Kinds {
				if !k.CaughtUp {
					return fmt.Errorf("the %s records are still being copied for the first time", kind)
				}
			}
			return nil
		},
		Metrics: []prometheus.Collector{status},
		More: map[string]http.Handler{"GET /status": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.MarshalWrite(w, status.Report(), json.Deterministic(true))
		})},
	}
}

type workerStatusCmd struct {
	tokenFlags
	AdminListen string `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9091" placeholder:"HOST:PORT" help:"The worker's admin address (${default})."`
	JSON        bool   `help:"Print the status as JSON."`
}

// statusTimeout bounds the wait for a worker's answer.
const statusTimeout = 5 * time.Second

func (c workerStatusCmd) Run(ctx context.Context, streams streams) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.AdminListen+"/status", nil)
	if err != nil {
		return usageError{fmt.Errorf("--admin-listen: %w", err)}
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("no worker answers at %s; name its admin address with --admin-listen", c.AdminListen)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return errors.New("the worker's admin address requires its token: set RUNLENS_ADMIN_TOKEN or name a file with --admin-token-file")
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("what answers at %s is no worker", c.AdminListen)
	}
	if c.JSON {
		_, err := io.Copy(streams.out, response.Body)
		return err
	}
	var report worker.Report
	if err := json.UnmarshalRead(response.Body, &report); err != nil {
		return fmt.Errorf("what answers at %s is no worker", c.AdminListen)
	}
	return printStatus(streams.out, report)
}

func printStatus(out io.Writer, r worker.Report) error {
	fmt.Fprintf(out, "%-12s %8s %24s %10s %12s %8s %8s\n",
		"kind", "lag", "certain until", "stored", "per second", "batches", "rejected")
	for _, kind := range normalize.Kinds {
		k := r.Kinds[kind]
		lag := "copying"
		if k.LagSeconds != nil {
			lag = fmt.Sprintf("%.1f s", *k.LagSeconds)
		}
		certain := "nothing is certain"
		if k.CertainUntil != nil {
			certain = k.CertainUntil.Format("2006-01-02T15:04:05.000Z")
		}
		fmt.Fprintf(out, "%-12s %8s %24s %10d %12.1f %8d %8d\n",
			kind, lag, certain, k.Stored, k.PerSecond, k.Batches, k.Rejected)
	}
	for _, kind := range normalize.Kinds {
		if name := r.Kinds[kind].WaitsFor; name != "" {
			fmt.Fprintf(out, "%s: not certain because of %s\n", kind, name)
		}
	}
	for _, kind := range normalize.Kinds {
		k := r.Kinds[kind]
		checkpoint := "none yet"
		if k.Checkpoint != nil {
			checkpoint = k.Checkpoint.Format(time.RFC3339)
		}
		fmt.Fprintf(out, "checkpoint of %s: %s, mapping %.8s\n", kind, checkpoint, k.Mapping)
	}
	last := "none yet"
	if d := r.Reconcile; d != nil {
		last = fmt.Sprintf("%s: %d days compared, %d differed, %d records copied again, %d replaced, "+
			"%d missing in the source, %d deleted, %d too many to delete, %d that break a rule in the source",
			d.EndedAt.Format(time.RFC3339), d.Compared, d.Differed, d.Repaired, d.Replaced,
			d.Missing, d.Deleted, d.Refused, d.Rejected)
	}
	_, err := fmt.Fprintf(out, "retries: %d\nlast reconcile: %s\n", r.Retries, last)
	return err
}

type workerResetCmd struct {
	storeFlags
	databaseFlags
	Kind string `arg:"" enum:"agent,run,attribution" help:"agent, run or attribution."`
}

func (workerResetCmd) Help() string {
	return `Clears the checkpoint of one kind, so that the next worker copies it from the beginning, which changes nothing that is right. Stop the worker first: one that runs saves its checkpoint again.

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
	store, err := openMigrated(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
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
}

type workerLayoutCmd struct {
	Mapping bool `help:"Print the mapping file of the default tables."`
}

func (c workerLayoutCmd) Run(streams streams) error {
	text := postgres.Layout
	if c.Mapping {
		text = postgres.DefaultMapping
	}
	_, err := fmt.Fprint(streams.out, text)
	return err
}
