package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"
)

// ofAStore are the commands that say or change what a store has. In a new one, which the embedded engine would make in
// a data directory that was mistyped, nothing is left to do: a purge would seem done, and a backup made.
var ofAStore = []string{"audit", "engine backup", "engine move", "keys list", "keys revoke", "keys rotate",
	"keys rotate-cursor-secret", "orgs list", "purge", "rollup rebuild", "usage", "worker reset"}

// AfterApply is called by kong when the flags are known.
func (f *storeFlags) AfterApply(command *kong.Context) error {
	f.needed = slices.Contains(ofAStore, command.Selected().Path())
	return nil
}

// refuseNoStore fails if the command needs a store, and the data directory has none.
func (f storeFlags) refuseNoStore() error {
	if !f.needed || f.ClickhouseURL != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(f.DataDir, "engine")); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return usageError{fmt.Errorf("there is no store in %s: say with --data-dir, --clickhouse-url or --cells where it is",
		f.DataDir)}
}
