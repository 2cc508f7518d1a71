package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/runlens/runlens/schema"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply every pending migration."`
	Down   migrateDownCmd   `cmd:"" help:"Roll back the newest migrations. The rows of their tables are lost."`
	Status migrateStatusCmd `cmd:"" help:"Show which migrations the store has."`
}

func (migrateCmd) Help() string {
	return `Servers, workers and ingest commands apply pending migrations when they start. Several may do so at once.
Going back to an older binary needs no migration.

Example:
  runlens migrate status --clickhouse-url clickhouse://runlens@db:9000/runlens --clickhouse-password-file password`
}

type migrateUpCmd struct{ storeFlags }

func (migrateUpCmd) Help() string {
	return `Run it before a long migration that a server's start has no time for. Running it again changes nothing.

Example:
  runlens migrate up --data-dir ./data`
}

func (c migrateUpCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return c.migrate(ctx, logger, io, schema.Own.Up)
}

type migrateDownCmd struct {
	storeFlags
	Steps int `default:"1" help:"How many migrations to roll back, at least 1."`
}

func (migrateDownCmd) Help() string {
	return `For trials: the rows of the tables that these migrations created are lost. Stop servers and workers first.
To go back to the binary of before, just start it.

Example:
  runlens migrate down --steps 1`
}

func (c migrateDownCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if c.Steps < 1 {
		return usageError{fmt.Errorf("--steps must be at least 1")}
	}
	return c.migrate(ctx, logger, io, func(ctx context.Context, db *sql.DB) error {
		return schema.Own.Down(ctx, db, c.Steps)
	})
}

type migrateStatusCmd struct{ storeFlags }

func (migrateStatusCmd) Help() string {
	return `Prints the store's version and this binary's. Changes nothing.

Example:
  runlens migrate status`
}

func (c migrateStatusCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return c.migrate(ctx, logger, io, func(context.Context, *sql.DB) error { return nil })
}

// migrate changes the schema and prints what the store has afterwards.
func (f storeFlags) migrate(
	ctx context.Context, logger *slog.Logger, io streams, change func(context.Context, *sql.DB) error,
) error {
	p, err := f.named()
	if err != nil {
		return err
	}
	return p.each(io, func(f storeFlags) error { return f.migrateOne(ctx, logger, io, change) })
}

func (f storeFlags) migrateOne(
	ctx context.Context, logger *slog.Logger, io streams, change func(context.Context, *sql.DB) error,
) error {
	store, err := openStore(ctx, f, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	var state schema.State
	err = changeSchema(ctx, migratingAlone, store, func(ctx context.Context, db *sql.DB) (err error) {
		if err = change(ctx, db); err == nil {
			state, err = schema.Own.Status(ctx, db)
		}
		return err
	})
	if err != nil {
		return err
	}
	word := "current"
	switch {
	case state.Version > state.Latest && state.Works():
		word = "newer than this binary, which works with it"
	case state.Version > state.Latest:
		word = "newer than this binary: upgrade runlens"
	case state.Dirty:
		word = "interrupted: run 'runlens migrate up'"
	case state.Others != "":
		word = "tables of another program: give runlens a database of its own"
	case state.Version < state.Latest:
		word = "pending: run 'runlens migrate up'"
	}
	_, err = fmt.Fprintf(io.out, "version %d of %d (%s)\n", state.Version, state.Latest, word)
	return err
}
