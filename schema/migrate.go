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
	migrateclickhouse "github.com/golang-migrate/migrate/v4/database/clickhouse"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The bookkeeping table is made here, not by golang-migrate, because its own CREATE TABLE fails
// when two processes start at once.
const createVersions = `CREATE TABLE IF NOT EXISTS schema_migrations (version Int64, dirty UInt8, sequence UInt64) ENGINE = MergeTree ORDER BY sequence`

const (
	dirtyPatience = 5 * time.Second
	dirtyPoll     = 100 * time.Millisecond
	// failurePatience is how long a migration that fails is tried again.
	failurePatience = 30 * time.Second
)

// A State says which migrations a store has.
type State struct {
	Version uint `json:"version"` // the newest migration applied; 0 is none
	Latest  uint `json:"latest"`  // the newest migration this binary carries
	Dirty   bool `json:"dirty"`   // a migration began and did not end
}

// Current reports whether the store has exactly the migrations of this binary.
func (s State) Current() bool { return s.Version == s.Latest && !s.Dirty }

// ErrNewerStore is returned when the store was migrated by a newer binary.
var ErrNewerStore = errors.New("the store's schema is newer than this binary: upgrade runlens")

// Up applies the pending migrations to the database called name, which must be the one db is connected to.
//
// Several processes may call it at once. golang-migrate's lock for ClickHouse holds within one
// process only, so safety comes from the migrations: each is one idempotent statement. A process
// that finds another one's migration unfinished waits for it a few seconds, then takes it for
// interrupted and runs it again, which harms nobody. One that fails does so too, for half a minute: other processes that are behind,
// one after the other, may just have dropped a table that they are going to make again.
func Up(ctx context.Context, db *sql.DB, name string) error {
	m, err := open(ctx, db, name)
	if err != nil {
		return err
	}
	latest, err := latestVersion()
	if err != nil {
		return err
	}
	dirtySince := time.Time{}
	failingSince := time.Time{}
	for {
		state, err := status(m, latest)
		switch {
		case err != nil:
			return err
		case state.Version > latest:
			return ErrNewerStore
		case state.Current():
			return nil
		case state.Dirty && dirtySince.IsZero():
			dirtySince = time.Now()
		case state.Dirty && time.Since(dirtySince) > dirtyPatience:
			if err := m.Force(before(state.Version)); err != nil {
				return fmt.Errorf("schema: clear an interrupted migration: %w", cause(err))
			}
			dirtySince = time.Time{}
		case !state.Dirty:
			dirtySince = time.Time{}
			err := m.Up()
			if err == nil {
				continue
			}
			var dirty migrate.ErrDirty
			if errors.As(err, &dirty) || errors.Is(err, migrate.ErrNoChange) {
				break
			}
			if failingSince.IsZero() {
				failingSince = time.Now()
			} else if time.Since(failingSince) > failurePatience {
				return fmt.Errorf("schema: migrate up: %w", cause(err))
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dirtyPoll):
		}
	}
}

// before is the version that golang-migrate resumes from to run version again. Versions count from 1 without gaps.
func before(version uint) int {
	if version <= 1 {
		return database.NilVersion
	}
	return int(version) - 1
}

// Down takes back the newest steps migrations and the rows their tables hold. Steps is at least 1;
// more than there are takes back all.
func Down(ctx context.Context, db *sql.DB, name string, steps int) error {
	m, err := open(ctx, db, name)
	if err != nil {
		return err
	}
	err = m.Steps(-steps)
	var short migrate.ErrShortLimit
	if err != nil && !errors.As(err, &short) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("schema: migrate down: %w", cause(err))
	}
	return nil
}

// Status reads the state of the store; it changes nothing but for the bookkeeping table, which it makes if absent.
func Status(ctx context.Context, db *sql.DB, name string) (State, error) {
	m, err := open(ctx, db, name)
	if err != nil {
		return State{}, err
	}
	latest, err := latestVersion()
	if err != nil {
		return State{}, err
	}
	return status(m, latest)
}

func status(m *migrate.Migrate, latest uint) (State, error) {
	version, dirty, err := m.Version()
	if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
		return State{}, fmt.Errorf("schema: read version: %w", cause(err))
	}
	return State{Version: version, Latest: latest, Dirty: dirty}, nil
}

func open(ctx context.Context, db *sql.DB, name string) (*migrate.Migrate, error) {
	if _, err := db.ExecContext(ctx, createVersions); err != nil {
		return nil, fmt.Errorf("schema: create version table: %w", err)
	}
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	driver, err := migrateclickhouse.WithInstance(db, &migrateclickhouse.Config{
		DatabaseName:          name,
		MigrationsTable:       "schema_migrations",
		MigrationsTableEngine: "MergeTree",
	})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", cause(err))
	}
	m, err := migrate.NewWithInstance("embedded", source, "clickhouse", driver)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return m, nil
}

// cause is the error behind one of golang-migrate's, which does not unwrap and would hide from callers that a
// connection broke and the same may succeed later.
func cause(err error) error {
	var behind *database.Error
	var failed database.Error
	switch {
	case errors.As(err, &behind):
		return behind.OrigErr
	case errors.As(err, &failed):
		return failed.OrigErr
	default:
		return err
	}
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
