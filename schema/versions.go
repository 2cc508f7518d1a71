package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
)

// createVersions makes the bookkeeping table. IF NOT EXISTS: several processes start at once.
const createVersions = "CREATE TABLE IF NOT EXISTS schema_migrations (version Int64, dirty UInt8, sequence UInt64)" +
	" ENGINE = MergeTree ORDER BY sequence SETTINGS " + DurableSettings

// errRecord is the cause of every failure to record a version. Trying again does not help: no other process can be its
// cause.
var errRecord = errors.New("schema: record the version of the schema")

// versions is golang-migrate's driver for ClickHouse, in the place of the one that comes with it. That one has no
// context, and keeps a connection for ever with each version that it fails to record, until none is left and it waits
// without end.
type versions struct {
	ctx context.Context // golang-migrate passes none; a driver serves one call of this package
	db  *sql.DB
}

var _ database.Driver = versions{}

// Lock does nothing: the migrations are made to be run by several processes at once (see Up).
func (v versions) Lock() error { return nil }

// Unlock does nothing.
func (v versions) Unlock() error { return nil }

// Run executes one migration: statements that end with a semicolon at the end of a line. ClickHouse takes one at a
// time.
func (v versions) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if _, err := v.db.ExecContext(v.ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// SetVersion records that a migration begins (dirty) or has ended. The record with the greatest sequence counts.
func (v versions) SetVersion(version int, dirty bool) error {
	insert := fmt.Sprintf("INSERT INTO schema_migrations (version, dirty, sequence) SELECT %d, %t, %d",
		version, dirty, time.Now().UnixNano())
	if _, err := v.db.ExecContext(v.ctx, insert); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// Version returns the version recorded last, database.NilVersion for none.
func (v versions) Version() (version int, dirty bool, err error) {
	const last = "SELECT version, dirty != 0 FROM schema_migrations ORDER BY sequence DESC LIMIT 1"
	err = v.db.QueryRowContext(v.ctx, last).Scan(&version, &dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return database.NilVersion, false, nil
	}
	return version, dirty, err
}

// The rest of the interface is for golang-migrate's own command, which this package does not use.
var errUnused = errors.New("schema: not for golang-migrate's command")

func (v versions) Open(string) (database.Driver, error) { return nil, errUnused }
func (v versions) Drop() error                          { return errUnused }
func (v versions) Close() error                         { return nil }
