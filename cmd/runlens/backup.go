package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/runlens/runlens/ingest/transfer"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// The folders of a backup, each a backup of ClickHouse, and the file that is written last.
const (
	backupRecords = "records"
	backupLists   = "lists"
	backupNote    = "backup.json"
)

// A note says what a backup is.
type note struct {
	BegunAt time.Time `json:"begun_at"` // by the store's clock
	Schema  uint      `json:"schema"`   // the newest migration of the store
	Records bool      `json:"records"`  // it has records, besides the lists
}

type backupCmd struct {
	storeFlags
	Dir   string `arg:"" help:"The folder to make."`
	Lists bool   `help:"@backup_lists"`
}

func (backupCmd) Help() string {
	return `Backs up the embedded engine's store into a new folder, while servers and workers use it. The folder has
secrets, and the records of whoever is purged later: keep it as private as the data directory, and not for ever.
What is derived is not in it, nor is how far copying has come.

Example:
  runlens engine backup /backups/monday
  runlens engine backup --lists /backups/after-a-purge`
}

func (c backupCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if c.ClickhouseURL != "" {
		return usageError{clickhouse.ErrNotEmbedded}
	}
	err := os.Mkdir(c.Dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("the folder of a backup must be a new one: %w", err)}
	}
	if err != nil {
		return usageError{fmt.Errorf("the folder of the backup cannot be made: %w", err)}
	}
	if err := c.backUp(ctx, logger); err != nil {
		return errors.Join(err, os.RemoveAll(c.Dir))
	}
	_, err = fmt.Fprintln(io.out, "backed up")
	return err
}

func (c backupCmd) backUp(ctx context.Context, logger *slog.Logger) error {
	store, err := openUnplaced(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := transfer.Whole(ctx, store.Conn()); err != nil {
		return err
	}
	n := note{Records: !c.Lists}
	if n.BegunAt, err = snapshot.Now(ctx, store.Conn()); err != nil {
		return err
	}
	state, err := schemaOf(ctx, store)
	if err != nil {
		return err
	}
	n.Schema = state.Version
	// The lists come last: whoever is purged meanwhile is on them.
	parts := []part{{backupRecords, schema.BackupRecords}, {backupLists, schema.BackupLists}}
	if c.Lists {
		parts = parts[1:]
	}
	for _, p := range parts {
		if err := store.Backup(ctx, filepath.Join(c.Dir, p.folder), func(destination string) string {
			return schema.BackupSQL(store.Database(), destination, p.tables)
		}); err != nil {
			return fmt.Errorf("cannot back up the %s: %w", p.folder, plain(err))
		}
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, backupNote), text, 0o600)
}

// A part of a backup is a folder with some tables.
type part struct {
	folder string
	tables []string
}

type restoreCmd struct {
	storeFlags
	Dir   string `arg:"" help:"The folder of the backup."`
	Lists string `placeholder:"DIR" help:"@restore_lists"`
}

func (restoreCmd) Help() string {
	return `Restores a backup into a new data directory, which no server or worker uses yet. Purges and revocations of
keys that came after the backup are not in it: name the latest backup with --lists, and whoever was purged stays out.
An organization that was purged since comes back: purge it again ('runlens audit' names it).
Workers then copy again what is missing, from the beginning.

Example:
  runlens engine restore /backups/monday --lists /backups/after-a-purge --data-dir ./restored`
}

func (c restoreCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if c.ClickhouseURL != "" {
		return usageError{clickhouse.ErrNotEmbedded}
	}
	if c.Lists == "" {
		c.Lists = c.Dir
	}
	records, err := readNote(c.Dir)
	if err == nil && !records.Records {
		err = fmt.Errorf("%s has lists only, no records", c.Dir)
	}
	if err != nil {
		return usageError{err}
	}
	lists, err := readNote(c.Lists)
	if err != nil {
		return usageError{err}
	}
	if lists.BegunAt.Before(records.BegunAt) {
		return usageError{errors.New("--lists must not be older than the backup: its purges and revocations would be lost")}
	}
	if used, err := clickhouse.InUse(ctx, c.DataDir); err != nil || used {
		return errors.Join(err, errors.New("other processes use the data directory: stop them, or name another one"))
	}
	store, err := openUnplaced(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := mayRestore(ctx, store, records, lists); err != nil {
		return err
	}
	if err := c.restore(ctx, store, logger); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "restored what was stored by %s, without people purged and with keys revoked by %s\n",
		records.BegunAt.Format(time.RFC3339), lists.BegunAt.Format(time.RFC3339))
	return err
}

// restore fills an empty store. Until it has ended, everything else refuses the store.
func (c restoreCmd) restore(ctx context.Context, store *clickhouse.Server, logger *slog.Logger) error {
	done, err := transfer.Restoring(ctx, store.Conn(), logger)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		dir string
		part
	}{{c.Lists, part{backupLists, schema.BackupLists}}, {c.Dir, part{backupRecords, schema.BackupRecords}}} {
		err := store.Restore(ctx, filepath.Join(p.dir, p.folder), func(source string) string {
			return schema.RestoreSQL(store.Database(), source, p.tables)
		})
		if err == nil {
			err = store.Check(ctx, p.tables)
		}
		if err != nil {
			return unrestored("restore the "+p.folder, err)
		}
	}
	if err := requireOfCopy(ctx, store); err != nil {
		return unrestored("read where organizations are", err)
	}
	if err := derive(ctx, store.Conn(), logger); err != nil {
		return unrestored("build what is derived", err)
	}
	return done(ctx)
}

// unrestored is the error of a restore that has begun: the data directory has a part of a store.
func unrestored(doing string, err error) error {
	return fmt.Errorf("cannot %s, remove the data directory before you try again: %w", doing, plain(err))
}

// mayRestore refuses a store that has any rows, derived ones too, and backups of a schema that does not fit into this
// one: of a newer one, and of one so old that its binaries would not work with the store.
func mayRestore(ctx context.Context, store *clickhouse.Server, backups ...note) error {
	state, err := schemaOf(ctx, store)
	if err != nil {
		return err
	}
	for _, n := range backups {
		if n.Schema > state.Version {
			return fmt.Errorf("the backup has the schema %d and this version %d: restore it with the version that made it, "+
				"or upgrade runlens", n.Schema, state.Version)
		}
		if n.Schema < state.Oldest {
			return fmt.Errorf("the backup has the schema %d and this version %d: restore it with the version that made it, "+
				"then upgrade", n.Schema, state.Version)
		}
	}
	if err := transfer.Whole(ctx, store.Conn()); err != nil {
		return err
	}
	empty, err := transfer.Empty(ctx, store.Conn())
	if err != nil {
		return err
	}
	if !empty {
		return errors.New("the data directory has been used: restore into a new one, and move it in place of this one " +
			"afterwards")
	}
	return nil
}

// schemaOf says which migrations a store has.
func schemaOf(ctx context.Context, store *clickhouse.Server) (schema.State, error) {
	db, err := store.DB()
	if err != nil {
		return schema.State{}, err
	}
	defer db.Close()
	return schema.Own.Status(ctx, db)
}

func readNote(dir string) (n note, err error) {
	text, err := os.ReadFile(filepath.Join(dir, backupNote))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, fmt.Errorf("%s has no whole backup: its file %s cannot be read", dir, backupNote)
	}
	return n, nil
}

// plain is what went wrong with files, or the failure of ClickHouse without its text.
func plain(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file
	}
	return errors.New(oneLine(err))
}
