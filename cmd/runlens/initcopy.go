package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
)

// copyTo copies everything of a database into the stores of all cells.
func (c *initCmd) copyTo(
	ctx context.Context, p *placed, database *postgres.Database, shared *sharedRejects, logger *slog.Logger, io streams,
) error {
	return p.eachStore(ctx, logger, io, func(f storeFlags, store *clickhouse.Server) error {
		if err := copyAgain(ctx, store.Conn(), database.Name(), logger); err != nil {
			return err
		}
		resolving, err := write.BeginResolving(ctx, []driver.Conn{store.Conn()}, true, write.Retry{Logger: logger})
		if err != nil {
			return err
		}
		err = worker.Run(ctx, worker.Options{Source: database, Name: database.Name(), Conn: store.Conn(), Logger: logger,
			Status: worker.NewStatus(time.Now), Owns: f.owns(), Once: true, OnReject: shared.add})
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		return resolving.End(ctx)
	})
}

// copyAgain has a source copied from the beginning that was copied into a store before, if that is outdated.
func copyAgain(ctx context.Context, conn driver.Conn, source string, logger *slog.Logger) error {
	purged, err := newestPurge(ctx, conn)
	if err != nil {
		return err
	}
	retry := write.Retry{Logger: logger}
	for _, kind := range normalize.Kinds {
		saved, found, err := worker.SavedAt(ctx, conn, retry, source, kind)
		if err == nil && found && outdated(saved, purged) {
			logger.Info("copying from the beginning: an organization was purged since, or a purge lifted", "kind", kind)
			_, err = worker.Reset(ctx, conn, retry, source, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
