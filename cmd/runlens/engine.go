package main

import (
	"context"
	"log/slog"

	"github.com/runlens/runlens/olap/clickhouse"
)

type engineCmd struct {
	storeFlags
	Listen string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"@engine_listen"`
}

func (engineCmd) Help() string {
	return `Runs the embedded engine until a signal. Prints its address, its user and the file of its password.
Servers, workers and ingest commands with the same data directory join it.

Example:
  runlens engine --data-dir ./data`
}

func (c engineCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	config, err := c.config(logger)
	if err != nil {
		return err
	}
	config.Listen = c.Listen
	return clickhouse.RunStandalone(ctx, config, io.out)
}
