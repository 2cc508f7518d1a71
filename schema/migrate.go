package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
)

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
	Oldest  uint `json:"oldest"`  // the newest migration that a binary must know to work with the store
	Dirty   bool `json:"dirty"`   // a migration began and did not end

	// Others are tables with names that the migrations give to theirs, and made otherwise, although none ever began:
	// another program's.
	Others string `json:"others,omitzero"`
}

// Current reports whether the store has exactly the migrations of this binary.
func (s State) Current() bool { return s.Version == s.Latest && !s.Dirty }

// None reports whether there is no store: no migration ever began.
func (s State) None() bool { return s.Version == 0 && !s.Dirty && s.Others == "" }

// Works reports whether this binary works with the store as it is: it has all migrations of this binary, and those of
// newer binaries that it may have besides work with this one, also while they are applied.
func (s State) Works() bool { return s.Current() || s.newer() && s.compatible() == nil }

// newer says that a newer binary has migrated the store, or is about to.
func (s State) newer() bool { return s.Version > s.Latest }

var (
	// ErrNewerStore is returned when the store was migrated by a newer binary, with which this one does not work.
	ErrNewerStore = errors.New("the store was changed by a newer version of runlens, beside which this one does not " +
		"work: upgrade runlens")
	// ErrNewerMigrations is returned when the migrations to roll back are of a newer binary.
	ErrNewerMigrations = errors.New("the newest migrations are of a newer version of runlens: " +
		"roll them back with that one")
	// ErrOlderStore is returned when the store was made before the first release.
	ErrOlderStore = errors.New("the store was made by an unreleased version of runlens, from which there is no upgrade: " +
		"start with an empty database or data directory, make the keys again and copy the records again")
	// ErrOtherTables is returned where the database has tables of another program with names of the store's: they would
	// be taken for its own, and a purge or Down would remove their rows.
	ErrOtherTables = errors.New("the database has tables of another program with names of runlens' own: give runlens a " +
		"database of its own")
)

// Up applies the pending migrations of the series to the database that db is connected to. A store that a newer binary
// has migrated stays as it is if the one of the series works with it. The errors wrap those of the database and of ctx.
//
// Several processes may call it at once. ClickHouse has no lock for them, so safety comes from the migrations: each
// statement may be run again. A process that finds a migration of another one unfinished waits for it 5 s, then takes
// it for interrupted and runs it again. A version that cannot be recorded, as on a full disk, ends it at once.
func (s Series) Up(ctx context.Context, db *sql.DB) error {
	for dirtySince := time.Now(); ; {
		state, err := s.Status(ctx, db)
		if err == nil {
			err = state.compatible()
		}
		switch {
		case err != nil || state.Works():
			return err
		case !state.Dirty:
			dirtySince = time.Now()
			err = s.apply(ctx, db)
		case time.Since(dirtySince) > dirtyPatience:
			dirtySince = time.Now()
			err = s.clear(ctx, db, state.Version)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dirtyPoll):
		}
	}
}

// apply applies what is pending. No error says that all is: another process may have begun, or ended, meanwhile.
func (s Series) apply(ctx context.Context, db *sql.DB) error {
	m, err := s.open(ctx, db)
	if err != nil {
		return err
	}
	var dirty migrate.ErrDirty
	if err := m.Up(); err != nil && !errors.As(err, &dirty) && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("schema: migrate up: %w", err)
	}
	return nil
}

// clear has a migration that was interrupted begin again.
func (s Series) clear(ctx context.Context, db *sql.DB, interrupted uint) error {
	m, err := s.open(ctx, db)
	if err != nil {
		return err
	}
	previous, err := s.before(interrupted)
	if err == nil {
		err = m.Force(previous)
	}
	if err != nil {
		return fmt.Errorf("schema: clear an interrupted migration: %w", err)
	}
	return nil
}

// compatible returns ErrNewerStore, ErrOlderStore or ErrOtherTables for a store that this binary cannot use.
func (s State) compatible() error {
	switch {
	case s.Others != "":
		return fmt.Errorf("%w (%s)", ErrOtherTables, s.Others)
	case s.Oldest > s.Latest:
		return ErrNewerStore
	case s.Older():
		return ErrOlderStore
	}
	return nil
}

// Older says that the store was made before the first release.
func (s State) Older() bool { return s.Version > 0 && s.Version < baseline }

// Down rolls the newest steps migrations back, and removes the rows of their tables. Steps is at least 1; more than
// there are rolls all of them back. It is for databases of tests and for trials: an older binary that works with the
// store needs no Down. The error is ErrNewerMigrations where a newer binary has migrated it.
func (s Series) Down(ctx context.Context, db *sql.DB, steps int) error {
	m, err := s.open(ctx, db)
	if err != nil {
		return err
	}
	state, err := s.Status(ctx, db)
	switch {
	case err != nil:
	case state.newer():
		err = ErrNewerMigrations
	case state.Older():
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

// Status reads the state of the store, which may have no tables. It changes nothing.
func (s Series) Status(ctx context.Context, db *sql.DB) (State, error) {
	floor, last, err := records(ctx, db)
	others := ""
	if err == nil && last.sequence == 0 {
		if others, err = namesTaken(ctx, db); err == nil {
			// A migration that began meanwhile, and made them, was recorded before.
			floor, last, err = records(ctx, db)
		}
	}
	if err != nil {
		return State{}, fmt.Errorf("schema: read version: %w", err)
	}
	if last.sequence != 0 {
		others = ""
	}
	latest, err := s.latest()
	return State{Version: uint(max(last.version, 0)), Latest: latest, Oldest: uint(max(floor.version, 0)),
		Dirty: last.dirty, Others: others}, err
}

// namesTaken lists the tables that the database has under names of the store's, and that are made otherwise.
func namesTaken(ctx context.Context, db *sql.DB) (string, error) {
	shapes, err := Shapes()
	if err != nil {
		return "", err
	}
	for _, table := range []string{tableFloor, tableVersions} {
		shapes = append(shapes, Shape{Name: table, Engine: "MergeTree", Key: versionsKey})
	}
	rows, err := db.QueryContext(ctx, "SELECT name, engine, sorting_key FROM system.tables"+
		" WHERE database = currentDatabase() ORDER BY name")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var taken []string
	for rows.Next() {
		var name, engine, key string
		if err := rows.Scan(&name, &engine, &key); err != nil {
			return "", err
		}
		if slices.ContainsFunc(shapes, func(s Shape) bool {
			ours, _, _ := strings.Cut(s.Engine, "(")
			return s.Name == name && (!strings.HasSuffix(engine, ours) || s.Key != key) // Replicated, Shared
		}) {
			taken = append(taken, name)
		}
	}
	return strings.Join(taken, ", "), rows.Err()
}
