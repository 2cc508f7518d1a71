package main

import (
	"context"
	"log/slog"

	"github.com/runlens/runlens/olap/clickhouse"
)

type engineCmd struct {
	Run     engineRunCmd   `cmd:"" default:"withargs" help:"Run it until a signal. 'runlens engine' does the same."`
	Fetch   engineFetchCmd `cmd:"" help:"Fetch the engine's library, without Go and npm."`
	Backup  backupCmd      `cmd:"" help:"Back up the store into a new folder, while it is in use."`
	Restore restoreCmd     `cmd:"" help:"Restore a backup into a new data directory."`

	Move engineMoveCmd `cmd:"" help:"Copy the store into an empty database of a ClickHouse server."`
}

func (engineCmd) Help() string {
	return `The embedded engine is a whole ClickHouse in a process of its own. Servers, workers and ingest commands start
it where no ClickHouse is named.

Example:
  runlens engine fetch
  runlens engine --data-dir ./data
  runlens engine backup /backups/monday`
}

type engineRunCmd struct {
	storeFlags
	Listen string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"@engine_listen"`
}

func (engineRunCmd) Help() string {
	return `Runs the embedded engine until a signal. Prints its address, its user and the file of its password.
Servers, workers and ingest commands with the same data directory join it.

Example:
  runlens engine run --data-dir ./data`
}

func (c engineRunCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	config, err := c.config(logger)
	if err != nil {
		return err
	}
	config.Listen = c.Listen
	defer stopping(ctx, logger)()
	return clickhouse.RunStandalone(ctx, config, io.out, func() { managed(ctx, nil, logger) })
}
