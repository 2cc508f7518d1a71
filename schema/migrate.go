package schema

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	dirtyPatience = 5 * time.Second
	dirtyPoll     = 100 * time.Millisecond
	// baseline is the number of the first migration. Stores of before have smaller versions.
	baseline = 100
)

// A State says which migrations a store has.
type State struct {
	Version uint `json:"version"` // the newest migration applied; 0 is none
	Latest  uint `json:"latest"`  // the newest migration this binary carries
	Dirty   bool `json:"dirty"`   // a migration began and did not end
}

// Current reports whether the store has exactly the migrations of this binary.
func (s State) Current() bool { return s.Version == s.Latest && !s.Dirty }

var (
	// ErrNewerStore is returned when the store was migrated by a newer binary.
	ErrNewerStore = errors.New("the store's schema is newer than this binary: upgrade runlens")
	// ErrOlderStore is returned when the store was made before the first release.
	ErrOlderStore = errors.New("the store was made by an unreleased version of runlens: " +
		"start with an empty database or data directory, and copy the records again")
)

// Up applies the pending migrations to the database that db is connected to. Its errors wrap those of the database
// and of ctx.
//
// Several processes may call it at once. ClickHouse has no lock for them, so safety comes from the migrations: each
// statement may be run again. A process that finds a migration of another one unfinished waits for it 5 s, then takes
// it for interrupted and runs it again. A version that cannot be recorded, as on a full disk, ends it at once.
func Up(ctx context.Context, db *sql.DB) error {
	m, err := open(ctx, db)
	if err != nil {
		return err
	}
	for dirtySince := time.Now(); ; {
		state, err := status(m)
		if err == nil {
			err = state.compatible()
		}
		switch {
		case err != nil:
			return err
		case state.Current():
			return nil
		case !state.Dirty:
			dirtySince = time.Now()
			err := m.Up()
			var dirty migrate.ErrDirty
			if err == nil || errors.As(err, &dirty) || errors.Is(err, migrate.ErrNoChange) {
				break // another process may have begun, or ended, meanwhile
			}
			return fmt.Errorf("schema: migrate up: %w", err)
		case time.Since(dirtySince) > dirtyPatience:
			previous, err := before(state.Version)
			if err == nil {
				err = m.Force(previous)
			}
			if err != nil {
				return fmt.Errorf("schema: clear an interrupted migration: %w", err)
			}
			dirtySince = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dirtyPoll):
		}
	}
}

// compatible returns ErrNewerStore or ErrOlderStore for a store that this binary cannot use.
func (s State) compatible() error {
	switch {
	case s.Version > s.Latest:
		return ErrNewerStore
	case s.older():
		return ErrOlderStore
	}
	return nil
}

// older says that the store was made before the first release.
func (s State) older() bool { return s.Version > 0 && s.Version < baseline }

// before is the version that golang-migrate resumes from to run version again: the one before it. Versions have gaps.
func before(version uint) (int, error) {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	previous, err := source.Prev(version)
	if errors.Is(err, fs.ErrNotExist) {
		return database.NilVersion, nil
	}
	return int(previous), err
}

// Down rolls the newest steps migrations back, and removes the rows of their tables. Steps is at least 1;
// more than there are rolls all of them back.
func Down(ctx context.Context, db *sql.DB, steps int) error {
	m, err := open(ctx, db)
	if err != nil {
		return err
	}
	state, err := status(m)
	if err == nil && state.older() {
		err = ErrOlderStore
	}
	if err != nil {
		return err
	}
	err = m.Steps(-steps)
	var short migrate.ErrShortLimit
	if err != nil && !errors.As(err, &short) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("schema: migrate down: %w", err)
	}
	return nil
}

// Status reads the state of the store; it changes nothing but for the bookkeeping table, which it makes if absent.
func Status(ctx context.Context, db *sql.DB) (State, error) {
	m, err := open(ctx, db)
	if err != nil {
		return State{}, err
	}
	return status(m)
}

func status(m *migrate.Migrate) (State, error) {
	version, dirty, err := m.Version()
	if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
		return State{}, fmt.Errorf("schema: read version: %w", err)
	}
	latest, err := latestVersion()
	return State{Version: version, Latest: latest, Dirty: dirty}, err
}

func open(ctx context.Context, db *sql.DB) (*migrate.Migrate, error) {
	if _, err := db.ExecContext(ctx, createVersions); err != nil {
		return nil, fmt.Errorf("schema: create version table: %w", err)
	}
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	m, err := migrate.NewWithInstance("embedded", source, "clickhouse", versions{ctx, db})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return m, nil
}

func latestVersion() (uint, error) {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return 0, fmt.Errorf("schema: %w", err)
	}
	version, err := source.First()
	for err == nil {
		next, nextErr := source.Next(version)
		if errors.Is(nextErr, fs.ErrNotExist) {
			return version, nil
		}
		version, err = next, nextErr
	}
	return 0, fmt.Errorf("schema: read migrations: %w", err)
}
