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

// The bookkeeping has two tables, because binaries of schema 100 read the first one only and stop at any number in it
// that they don't know (decisions/upgrades.md).
const (
	// tableFloor says which binaries work with the store: those that know the migration recorded last.
	tableFloor = "schema_migrations"
	// tableVersions has the newest migration that was applied.
	tableVersions = "schema_versions"
)

// createVersions makes a bookkeeping table. IF NOT EXISTS: several processes start at once.
const createVersions = "CREATE TABLE IF NOT EXISTS %s (version Int64, dirty UInt8, sequence UInt64)" +
	" ENGINE = MergeTree ORDER BY " + versionsKey + " SETTINGS " + DurableSettings

const versionsKey = "sequence"

// errRecord is the cause of every failure to record a version. Trying again does not help: no other process can be its
// cause.
var errRecord = errors.New("schema: record the version of the schema")

// versions is golang-migrate's driver for ClickHouse, in the place of the one that comes with it. That one has no
// context, and keeps a connection for ever with each version that it fails to record, until none is left and it waits
// without end.
type versions struct {
	ctx    context.Context // golang-migrate passes none; a driver serves one call of this package
	db     *sql.DB
	floors map[int]int // by migration
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

// SetVersion records that a migration begins (dirty) or has ended. Binaries that don't work with it are kept away from
// its beginning on. Those of schema 100 read that a migration of theirs is unfinished, and of no other.
func (v versions) SetVersion(version int, dirty bool) error {
	last, err := recorded(v.ctx, v.db, tableFloor)
	if err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	floor := record{version: version, dirty: dirty}
	if oldest, ok := v.floors[version]; ok && oldest != version {
		floor = record{version: oldest}
	}
	if floor.version != last.version || floor.dirty != last.dirty {
		if err := v.record(tableFloor, floor); err != nil {
			return err
		}
	}
	return v.record(tableVersions, record{version: version, dirty: dirty})
}

const (
	// MigrationPlacement is the migration that made TablePlacement.
	MigrationPlacement = 120
	// MigrationMoves is the migration since which organizations move. Binaries that don't know it would not notice.
	MigrationMoves = 130
)

// Require makes binaries that don't know a migration refuse the store from now on: they would not heed what it has been
// told since. Calling it again changes nothing. While another process migrates it does nothing.
func Require(ctx context.Context, db *sql.DB, migration int) error {
	v := versions{ctx: ctx, db: db}
	floor, err := recorded(ctx, db, tableFloor)
	if err != nil || floor.version >= migration {
		return err
	}
	newest, dirty, err := v.Version()
	if err != nil || dirty {
		return err
	}
	if err := v.record(tableFloor, record{version: migration}); err != nil {
		return err
	}
	// Of both tables the last record counts.
	return v.record(tableVersions, record{version: newest})
}

// record adds a record that counts from now on, also where the clock was ahead when earlier ones were added.
func (v versions) record(table string, r record) error {
	insert := fmt.Sprintf("INSERT INTO %s (version, dirty, sequence) SELECT %d, %t, greatest(%d,"+
		" (SELECT max(sequence) + 1 FROM %s), (SELECT max(sequence) + 1 FROM %s))",
		table, r.version, r.dirty, time.Now().UnixNano(), tableFloor, tableVersions)
	if _, err := v.db.ExecContext(v.ctx, insert); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// Version returns the version recorded last, database.NilVersion for none.
func (v versions) Version() (version int, dirty bool, err error) {
	_, last, err := records(v.ctx, v.db)
	return last.version, last.dirty, err
}

// A record is a row of a bookkeeping table. The one with the greatest sequence counts.
type record struct {
	version  int
	dirty    bool
	sequence uint64
}

// records reads the records that count: of tableFloor, and of the newest migration that was applied. A binary of schema
// 100 records that in tableFloor only: whatever is the latest there counts.
func records(ctx context.Context, db *sql.DB) (floor, last record, err error) {
	if floor, err = recorded(ctx, db, tableFloor); err != nil {
		return floor, last, err
	}
	if last, err = recorded(ctx, db, tableVersions); err == nil && floor.sequence > last.sequence {
		last = floor
	}
	return floor, last, err
}

// recorded reads the record of a table that counts; its version is database.NilVersion if there is none, or no table of
// ours: golang-migrate makes one of the same name for other programs, which is a TinyLog by default.
func recorded(ctx context.Context, db *sql.DB, table string) (r record, err error) {
	var exists bool
	const find = "SELECT count() > 0 FROM system.tables WHERE database = currentDatabase() AND name = ?" +
		" AND sorting_key = '" + versionsKey + "'"
	if err = db.QueryRowContext(ctx, find, table).Scan(&exists); err == nil && exists {
		err = db.QueryRowContext(ctx, "SELECT version, dirty != 0, sequence FROM "+table+" ORDER BY sequence DESC LIMIT 1").
			Scan(&r.version, &r.dirty, &r.sequence)
	}
	if err == nil && !exists || errors.Is(err, sql.ErrNoRows) {
		return record{version: database.NilVersion}, nil
	}
	return r, err
}

// The rest of the interface is for golang-migrate's own command, which this package does not use.
var errUnused = errors.New("schema: not for golang-migrate's command")

func (v versions) Open(string) (database.Driver, error) { return nil, errUnused }
func (v versions) Drop() error                          { return errUnused }
func (v versions) Close() error                         { return nil }
