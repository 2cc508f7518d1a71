package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/schema"
)

// ofAStore are the commands that say or change what a store has. In a new one, which they would make where the data
// directory or the database was mistyped, nothing is left to do: a purge would seem done, and a backup made.
// 'keys list' may be what an installation begins with.
var ofAStore = []string{"audit", "engine backup", "engine move", "keys revoke", "keys rotate",
	"keys rotate-cursor-secret", "orgs list", "purge", "rollup rebuild", "usage", "worker reset"}

// AfterApply is called by kong when the flags are known. Of cells the placement says which stores there are.
func (f *storeFlags) AfterApply(command *kong.Context) error {
	f.needed = f.Cells == "" && slices.Contains(ofAStore, command.Selected().Path())
	return nil
}

// refuseNoEngine fails if the command needs a store, and no engine ever was in the data directory.
func (f storeFlags) refuseNoEngine() error {
	if !f.needed || f.ClickhouseURL != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(f.DataDir, "engine")); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.noStore()
}

// migrateUp applies pending migrations, but makes no store if the command needs one. It says where it makes one: that
// may be another place than was meant.
func (f storeFlags) migrateUp(ctx context.Context, db *sql.DB, logger *slog.Logger) error {
	state, err := schema.Own.Status(ctx, db)
	switch {
	case err != nil || state.Works(): // most starts need no more than that
		return err
	case state.None() && f.needed:
		return f.noStore()
	case state.None():
		logger.Info("making a new store", "in", f.where())
	}
	return schema.Own.Up(ctx, db)
}

func (f storeFlags) noStore() error {
	return usageError{fmt.Errorf("there is no store in %s; name the right one with --data-dir or --clickhouse-url",
		f.where())}
}

// where is the place of the store.
func (f storeFlags) where() string {
	if f.ClickhouseURL != "" {
		return "the database"
	}
	return f.DataDir
}
