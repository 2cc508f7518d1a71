package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

// storeFlags say which ClickHouse a command works on (contract 2).
type storeFlags struct {
	ClickhouseURL string `env:"RUNLENS_CLICKHOUSE_URL" placeholder:"URL" help:"@clickhouse_url"`

	ClickhousePasswordFile string `env:"RUNLENS_CLICKHOUSE_PASSWORD_FILE" placeholder:"FILE" help:"@password_file"`

	EngineLib    string `env:"RUNLENS_ENGINE_LIB" placeholder:"FILE" help:"@engine_lib"`
	EngineMemory uint64 `env:"RUNLENS_ENGINE_MEMORY" placeholder:"BYTES" help:"@engine_memory"`
	DataDir      string `env:"RUNLENS_DATA_DIR" default:"./data" placeholder:"DIR" help:"@data_dir"`
	Cells        string `env:"RUNLENS_CELLS" placeholder:"FILE" help:"@cells"`

	needed    bool             // the store: the command does not make one where there is none
	queries   int              // of the API that this process runs at once
	cell      string           // the name of the cell that the fields above name; empty for none
	directory *cells.Directory // of organizations in cells; nil where there are none, or it is not known yet
	placement *cells.Placement // what was known at the beginning; nil likewise
}

func (f storeFlags) config(logger *slog.Logger) (config clickhouse.Config, err error) {
	config = clickhouse.Config{
		URL: f.ClickhouseURL, EngineLib: f.EngineLib, EngineMemoryBytes: f.EngineMemory, DataDir: f.DataDir, Logger: logger,
		Queries: f.queries,
	}
	if f.ClickhouseURL == "" && f.EngineMemory != 0 && f.EngineMemory < clickhouse.MinEngineMemoryBytes {
		return config, usageError{fmt.Errorf("--engine-memory must be at least %d bytes", clickhouse.MinEngineMemoryBytes)}
	}
	if f.ClickhousePasswordFile == "" || f.ClickhouseURL == "" {
		return config, nil
	}
	password, err := readSecret("--clickhouse-password-file", f.ClickhousePasswordFile, "")
	if err == nil {
		config.URL, err = withPassword(f.ClickhouseURL, password)
	}
	return config, err
}

// storeArguments are the flags of the store that were given, for another command line.
func (f storeFlags) storeArguments(given map[string]bool) (arguments string) {
	for _, flag := range []struct{ name, value string }{
		{"cells", f.Cells}, {"clickhouse-url", f.ClickhouseURL}, {"clickhouse-password-file", f.ClickhousePasswordFile},
		{"engine-lib", f.EngineLib}, {"data-dir", f.DataDir},
	} {
		if given[flag.name] {
			arguments += " --" + flag.name + " " + output.Quoted(flag.value)
		}
	}
	return arguments
}

// opening is the step that opens the store.
func (f storeFlags) opening() startStep {
	if f.ClickhouseURL != "" {
		return openingServer
	}
	return openingEngine
}

// openStore connects to the store without touching its schema.
func openStore(ctx context.Context, f storeFlags, logger *slog.Logger) (*clickhouse.Server, error) {
	config, err := f.config(logger)
	if err == nil {
		err = f.refuseNoEngine()
	}
	if err != nil {
		return nil, err
	}
	if config.URL != "" { // of the embedded engine nobody hides rows
		shapes, err := schema.Shapes()
		if err != nil {
			return nil, err
		}
		for _, s := range shapes {
			config.Tables = append(config.Tables, s.Name)
		}
	}
	open := func(ctx context.Context) (*clickhouse.Server, error) {
		store, err := clickhouse.Open(ctx, config)
		if errors.Is(err, clickhouse.ErrURL) {
			err = usageError{err}
		}
		return store, err
	}
	return within(ctx, f.opening(), func(late *clickhouse.Server) { late.Close() }, open)
}

// openMigrated connects to the store, applies pending migrations, and makes sure that it is the one that is meant.
func openMigrated(ctx context.Context, f storeFlags, logger *slog.Logger) (*clickhouse.Server, error) {
	store, err := openUnplaced(ctx, f, logger)
	if err != nil {
		return nil, err
	}
	admit := func(ctx context.Context) (any, error) { return nil, f.admit(ctx, store) }
	if _, err := within(ctx, admitting, nil, admit); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

// withStore does something with the store, which it opens as openMigrated does.
func (f storeFlags) withStore(ctx context.Context, logger *slog.Logger, do func(*clickhouse.Server) error) error {
	store, err := openMigrated(ctx, f, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	return do(store)
}

// openUnplaced is openMigrated for a store of which it is not known yet what cell it is.
func openUnplaced(ctx context.Context, f storeFlags, logger *slog.Logger) (*clickhouse.Server, error) {
	store, err := openStore(ctx, f, logger)
	if err != nil {
		return nil, err
	}
	up := func(ctx context.Context, db *sql.DB) error { return f.migrateUp(ctx, db, logger) }
	if err := changeSchema(ctx, migrating, store, up); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

// changeSchema changes the schema of a store as a step of the start.
func changeSchema(
	ctx context.Context, step startStep, store *clickhouse.Server, change func(context.Context, *sql.DB) error,
) error {
	_, err := within(ctx, step, nil, func(ctx context.Context) (any, error) {
		db, err := store.DB()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		return nil, change(ctx, db)
	})
	return err
}

// openPatience is how long a command that copies waits for a store that may be starting again.
const openPatience = 10 * time.Second

// openPatiently is openMigrated for commands that ride out an outage; a patience of 0 is endless.
func openPatiently(
	ctx context.Context, f storeFlags, logger *slog.Logger, patience time.Duration,
) (*clickhouse.Server, error) {
	retry := write.Retry{Logger: logger, Patience: patience}
	return patiently(ctx, retry, "open the store", func() (*clickhouse.Server, error) {
		return openMigrated(ctx, f, logger)
	})
}

// patiently opens something, again and again while that fails for a reason that passes.
func patiently[T any](
	ctx context.Context, retry write.Retry, what string, open func() (T, error),
) (opened T, err error) {
	var last error // says more than the error of the tries
	err = retry.Do(ctx, what, func() error {
		opened, last = open()
		return last
	})
	if err != nil && last != nil {
		err = last
	}
	return opened, err
}
