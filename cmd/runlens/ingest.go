package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
)

type ingestCmd struct {
	storeFlags
	formatFlags
	Files   []string `arg:"" name:"file" placeholder:"FILE" help:"@ingest_files"`
	Rejects string   `placeholder:"FILE" help:"@rejects"`
	OnError string   `enum:"continue,stop" default:"continue" help:"@on_error"`
	DryRun  bool     `help:"Read and check everything, write nothing. Needs no store."`
	Restart bool     `help:"Begin again, even if an earlier run of the same files was interrupted."`
	JSON    bool     `help:"Print the summary as one JSON object."`
}

func (ingestCmd) Help() string {
	return `Copies agent, run and attribution records from NDJSON, CSV or Parquet files, also compressed with gzip or zstd.
Ingesting the same records again changes nothing.
NDJSON records name their kind in the field "record". CSV and Parquet files have one kind, named by --record.
A record that breaks a rule is rejected alone. The rest is stored, and the exit code is 3.
You can fix the file of --rejects and ingest it as it is.

All files are opened before anything is stored. The process holds at most 256 MiB, whatever it reads. Packed Parquet is
unpacked into a temporary file (TMPDIR), and refused if it takes more than half of what is free there.

The first interrupt stores what was read, prints the summary and ends with exit code 1. The second ends at once.
The same command then continues from the last acknowledged batch; --restart begins again.
Standard input and pipes can't be continued: send the rest, or everything again.

Example:
  runlens ingest --rejects rejects.ndjson agents.ndjson 'runs-*.ndjson.zst'
  runlens ingest --record attribution attributions.parquet
  psql -c "COPY (SELECT ...) TO STDOUT CSV HEADER" | runlens ingest --format csv --record run -`
}

func (c ingestCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	readingMemory.bound()
	in, err := c.open(c.Files, io)
	if err != nil {
		return usageError{err}
	}
	if err := refuseInputs("--rejects", c.Rejects, io.in, in.names()...); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	unstopped, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.copy(ctx, unstopped, in, logger, io) }()
	select {
	case err := <-ended:
		return err
	case <-signals:
		stop()
	}
	go func() {
		<-signals
		cancel()
	}()
	if err, came := awaited(ctx, ended, abandonStepAfter); came {
		return err
	}
	return errors.New("ended by a second signal; not all that was read is stored")
}

// copy is the whole of the command. The end of unstopped, by the first signal, ends in order what stores records, what
// was read is stored, and ends at once what stores none.
func (c ingestCmd) copy(ctx, unstopped context.Context, in inputs, logger *slog.Logger, io streams) error {
	tracer, endTracing, err := openTracing(ctx, "runlens-ingest", logger)
	if err != nil {
		return err
	}
	defer endTracing()
	options := ingest.Options{Sources: in.files, StopOnError: c.OnError == "stop", Stop: unstopped.Done(),
		Logger: logger, Tracer: tracer}
	var backfill *ingest.Backfill
	var resolving *write.Resolving
	if !c.DryRun {
		writer, conns, leave, err := c.openWriter(unstopped, logger)
		if err != nil {
			return err
		}
		defer leave()
		options.Writer = writer
		retry := write.Retry{Logger: logger, Patience: ingest.Patience}
		if in.resumable {
			backfill = ingest.NewBackfill(checkpoint.NewLog(conns[0], retry), in.fingerprints)
		}
		if backfill != nil && !c.Restart {
			if options.From, err = c.resume(unstopped, backfill, conns, logger); err != nil {
				return err
			}
		}
		continues := options.From.Summary.Read > 0
		if resolving, err = write.BeginResolving(unstopped, conns, continues, retry); err != nil {
			return err
		}
	}
	run := ""
	if backfill != nil {
		run = backfill.ID()[:12] // enough to distinguish runs in one folder
	}
	rejects, err := within(unstopped, openingRejects, nil, func(context.Context) (rejects, error) {
		return newRejects(c.Rejects, run, options.From.Summary.Read > 0, io.err)
	})
	switch {
	case unstopped.Err() != nil && err != nil:
		return err
	case err != nil:
		return usageError{err}
	}
	options.OnReject = rejects.Add
	progress := newProgress(io.err, "ingest", in.bytes, logger)
	options.Progress = func(p ingest.Progress) {
		progress.show(in.read(p), "read", p.Summary.Read, "rejected", p.Summary.Rejected)
	}
	if backfill != nil {
		options.Acknowledged = func(ctx context.Context, p ingest.Progress) error {
			if err := rejects.Flush(); err != nil {
				return err
			}
			return backfill.Save(ctx, p)
		}
	}
	began := time.Now()
	summary, err := ingest.Run(ctx, options)
	took := time.Since(began)
	progress.end()
	err = errors.Join(err, rejects.Close())
	if resolving != nil && (err == nil || errors.Is(err, ingest.ErrRejected)) {
		err = errors.Join(err, c.resolve(unstopped, resolving, logger))
	}
	if err == nil && backfill != nil {
		err = backfill.Finish(ctx)
	}
	printErr := c.print(io.out, summary, options.From.Summary, took, err)
	return errors.Join(c.outcome(err, summary.Rejected, backfill != nil), printErr)
}

// resolve ends a resolving, or says what is left where the first signal ends it.
func (c ingestCmd) resolve(unstopped context.Context, resolving *write.Resolving, logger *slog.Logger) error {
	defer remind(logger, "looking for records that do not count once")()
	err := resolving.End(unstopped)
	if err != nil && unstopped.Err() != nil {
		return errors.New("all is stored; stopped before it was known that every record counts once, " +
			"which a server sees to")
	}
	return err
}

// outcome is how the copying ended.
func (c ingestCmd) outcome(err error, rejected int64, continues bool) error {
	switch {
	case errors.Is(err, ingest.ErrStopped) && continues:
		return fmt.Errorf("%w; running it again continues there", err)
	case errors.Is(err, ingest.ErrStopped) && c.DryRun:
		return errors.New("stopped before the end; what was read was checked")
	case errors.Is(err, ingest.ErrStopped):
		return fmt.Errorf("%w; send the rest, or everything again, which changes nothing twice", err)
	case err == nil && rejected > 0:
		return exitError{exitRejected}
	default:
		return err
	}
}

// openWriter opens what records are written to. The first of the stores keeps how far a backfill has come.
func (c ingestCmd) openWriter(ctx context.Context, logger *slog.Logger) (
	writer ingest.Writer, conns []driver.Conn, leave func(), err error) {
	patiently := func(ctx context.Context, f storeFlags, logger *slog.Logger) (*clickhouse.Server, error) {
		return openPatiently(ctx, f, logger, openPatience)
	}
	p, stores, leave, err := c.openAll(ctx, logger, patiently)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, store := range stores {
		conns = append(conns, store.Conn())
	}
	return p.writer(stores, logger), conns, leave, nil
}

// writer returns a writer into the stores of all cells.
func (p *placed) writer(stores []*clickhouse.Server, logger *slog.Logger) ingest.Writer {
	var writers []*write.Writer
	for i, store := range stores {
		writer := ingest.NewWriter(store.Conn(), logger)
		writer.Gate = p.flags[p.names[i]].gate(store.Conn())
		writers = append(writers, writer)
	}
	if p.directory == nil {
		return writers[0]
	}
	return write.NewSplit(p.index(), writers...)
}

// resume returns where an earlier run was interrupted. What it had stored may have been purged since, or may have to be
// let in now: then the backfill begins again.
func (c ingestCmd) resume(
	ctx context.Context, backfill *ingest.Backfill, conns []driver.Conn, logger *slog.Logger,
) (ingest.Progress, error) {
	at, since, found, err := backfill.Interrupted(ctx)
	if !found || err != nil {
		return at, err
	}
	for _, conn := range conns {
		purged, err := newestPurge(ctx, conn)
		if err != nil {
			return ingest.Progress{}, err
		}
		if outdated(since, purged) {
			logger.Info("beginning an interrupted ingest again: an organization was purged since, or a purge lifted",
				"stopped_at", since)
			return ingest.Progress{}, nil
		}
	}
	logger.Info("continuing an interrupted ingest; --restart begins again", "stopped_at", since, "source", at.Source+1,
		"read", at.Summary.Read)
	return at, nil
}
