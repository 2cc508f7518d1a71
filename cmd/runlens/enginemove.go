package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runlens/runlens/ingest/transfer"
	"github.com/runlens/runlens/olap/clickhouse"
)

type engineMoveCmd struct {
	storeFlags
	To             string `required:"" placeholder:"URL" help:"@move_to"`
	ToPasswordFile string `placeholder:"FILE" help:"@move_password"`
}

func (engineMoveCmd) Help() string {
	return `Copies the embedded engine's store into an empty database of a ClickHouse server, and proves that both have the
same: records with their stamps, keys, cursor secrets, who was purged, audit log, usage, checkpoints of workers.
Stop everything that uses the data directory before. Then start it with RUNLENS_CLICKHOUSE_URL: keys and cursors hold,
and workers go on where they were. The data directory stays as it was; no server may use it any more.
After an interruption, run it again: it goes on.

Example:
  runlens engine move --to https://runlens@clickhouse.internal:8443/runlens --to-password-file password`
}

func (c engineMoveCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if c.ClickhouseURL != "" {
		return usageError{errors.New("this copies the embedded engine's store: RUNLENS_CLICKHOUSE_URL must not be set")}
	}
	if !strings.HasPrefix(c.To, "http://") && !strings.HasPrefix(c.To, "https://") {
		return usageError{fmt.Errorf("--to: %w", clickhouse.ErrNotHTTP)}
	}
	if used, err := clickhouse.InUse(ctx, c.DataDir); err != nil || used {
		return errors.Join(err, errors.New("other processes use the data directory: stop them"))
	}
	from, err := openUnplaced(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openUnplaced(ctx, storeFlags{ClickhouseURL: c.To, ClickhousePasswordFile: c.ToPasswordFile}, logger)
	if err != nil {
		return err
	}
	defer to.Close()
	sent, err := clickhouse.NewTransfer(from, to)
	if err != nil {
		return err
	}
	of := transfer.Copy{From: from.Conn(), To: to.Conn(), Logger: logger, Send: sent.Send}
	rows, err := of.Run(ctx)
	if err == nil {
		err = requireOfCopy(ctx, to)
	}
	if err == nil {
		err = derive(ctx, to.Conn(), logger)
	}
	if err == nil {
		err = of.Done(ctx)
	}
	if err != nil {
		return moveFailure(err)
	}
	_, err = fmt.Fprintf(io.out, "moved %d rows, which are the same in both stores\n", rows)
	return err
}

// moveFailure is what a move says that ended before the stores were the same.
func moveFailure(err error) error {
	text := oneLine(err)
	if !advises(err) {
		text += "; the data directory is as it was, and the same command goes on where this one ended"
	}
	return errors.New(text)
}
