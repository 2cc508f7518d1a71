package schema_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// What was released never changes: stores have it. The size of granules may, on which no statement rests: two tables of
// stores that are made today have smaller ones (decisions/granules.md).
func TestTheBaselineStays(t *testing.T) {
	for name, want := range map[string]string{
		"0100_baseline.up.sql":   "588fdaafa0650fd072b562207ac64315002d8466f011dc5e29ecba1cfe46de26",
		"0100_baseline.down.sql": "2e113b4d31fc1f17076a5a989f5b85b9796a3585dfdcd7ccd75a581871dbbf0c",
	} {
		content, err := fs.ReadFile(schema.Own.Files, "migrations/"+name)
		content = bytes.Replace(content, []byte("SETTINGS index_granularity = 512, "), []byte("SETTINGS "), 2)
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || got != want {
			t.Errorf("%s has the sum %s, want %s (%v): change the schema by a migration of its own", name, got, want, err)
		}
	}
}

// Every migration after the baseline says which binaries work with it.
func TestMigrationsSayWithWhatTheyWork(t *testing.T) {
	names, err := fs.Glob(schema.Own.Files, "migrations/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(schema.Own.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var number, oldest int
		if _, err := fmt.Sscanf(path.Base(name), "%d_", &number); err != nil {
			t.Fatal(err)
		}
		if number == 100 {
			continue
		}
		_, err = fmt.Sscanf(string(content), "-- Works with binaries from %d on.\n", &oldest)
		if err != nil || oldest < 100 || oldest > number {
			t.Errorf("%s begins with no line such as: -- Works with binaries from 100 on.", name)
		}
	}
}

// released are the statements by which the first release made a store: its bookkeeping, and rows of each kind that
// must survive. They stay as they are.
var released = []string{
	"CREATE TABLE schema_migrations (version Int64, dirty UInt8, sequence UInt64) ENGINE = MergeTree ORDER BY sequence",
	"INSERT INTO schema_migrations SELECT 100, 1, toUnixTimestamp64Nano(now64(9)) - 1000",
	"INSERT INTO schema_migrations SELECT 100, 0, toUnixTimestamp64Nano(now64(9)) - 500",
	"INSERT INTO agents (organization_id, agent_id, name, slug, deleted_at, updated_at) VALUES " +
		"('acme', '0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10', 'Billing', 'billing', NULL, '2026-01-05 10:00:00')",
	"INSERT INTO runs (organization_id, run_id, created_at, agent_id, kind, parent_run_id, status, " +
		"initiator_identifier, initiator_name, initiator_type, updated_at) VALUES ('acme', " +
		"'0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11', '2026-01-05 10:00:00', '0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10', " +
		"'agent', NULL, 'COMPLETED', 'ada@x.example', 'Ada', 'internal', '2026-01-05 10:01:00')",
	"INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, user_name, " +
		"activity_type, run_initiation_type, source, occurred_at) VALUES ('acme', " +
		"'0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b12', '0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11', " +
		"'0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10', 'ada@x.example', 'Ada', 'initiated', 'human', 'web', " +
		"'2026-01-05 10:00:00')",
	"INSERT INTO api_keys (key_id, organization_id, name, scopes, secret_hash, created_at, revoked_at, expires_at, " +
		"networks) VALUES ('key', 'acme', 'dashboard', ['analytics:read'], 'hash', '2026-01-05 10:00:00', NULL, NULL, [])",
	"INSERT INTO audit_log (action_id, outcome, action, organization_id, key_id, actor, details) VALUES " +
		"(generateUUIDv4(), 'done', 'keys create', 'acme', 'key', 'root@host', '{}')",
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func stored(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text string
	err := db.QueryRow("SELECT arrayStringConcat([(SELECT any(tupleElement(latest, 'name')) FROM agents), " +
		"(SELECT any(assumeNotNull(tupleElement(record, 'initiator_name'))) FROM runs), " +
		"(SELECT any(toString(bitAnd(bitShiftRight(state, 6), 15))) FROM runs), " +
		"(SELECT any(concat(user_identifier, ' ', source)) FROM attributions), " +
		"(SELECT any(concat(key_id, ' ', name, ' ', substring(verification, 33))) FROM api_keys), " +
		"(SELECT any(action) FROM audit_log), toString((SELECT sum(rows) FROM insert_counters))], ' ')").Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A store of the first release is migrated in place, by this binary and by newer ones: every row survives, and its
// binary, which reads schema_migrations and knows of nothing else, still takes the store for its own.
func TestUpgradeFromTheFirstRelease(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	baseline, err := fs.ReadFile(schema.Own.Files, "migrations/0100_baseline.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, strings.Split(string(baseline), ";\n")...)
	execute(t, db, released...)
	before := stored(t, db)
	if !strings.HasPrefix(before, "Billing Ada 9 ada@x.example web key dashboard acme\nanalytics:read") {
		t.Fatalf("the store has %q", before)
	}
	newer := olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive})
	for _, series := range []schema.Series{schema.Own, newer} {
		if err := series.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
		if state, err := series.Status(ctx, db); err != nil || !state.Current() {
			t.Errorf("%+v, %v", state, err)
		}
		if after := stored(t, db); after != before {
			t.Errorf("after the upgrade %q, before %q", after, before)
		}
		if got := floor(t, db); got != "100 clean" {
			t.Errorf("a binary of the first release reads %s", got)
		}
	}
}

// What was recorded while the clock of a machine was ahead does not hide what is recorded after it: the next binary
// migrates the store, once.
func TestUpgradeAfterTheClockWasAhead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // to fail, instead of migrating for ever
	defer cancel()
	next := map[string]string{"9000_next": olaptest.Additive}
	const floors, versions = "schema_migrations", "schema_versions"
	for _, ahead := range [][]string{{floors}, {versions}, {floors, versions}} {
		_, db := migrated(t)
		for _, table := range ahead {
			execute(t, db, "INSERT INTO "+table+" SELECT version, dirty, sequence + 3600000000000 FROM "+table+
				" ORDER BY sequence DESC LIMIT 1")
		}
		newer := olaptest.Newer(t, next)
		if err := newer.Up(ctx, db); err != nil {
			t.Errorf("%v was ahead: up ended with %v", ahead, err)
		}
		if state, err := newer.Status(ctx, db); err != nil || !state.Current() {
			t.Errorf("%v was ahead: %+v, %v", ahead, state, err)
		}
	}
}

// floor is what a binary of the first release reads of the store.
func floor(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	err := db.QueryRow("SELECT concat(toString(version), if(dirty, ' dirty', ' clean')) FROM schema_migrations " +
		"ORDER BY sequence DESC LIMIT 1").Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Beside a newer binary whose migration works with it a binary is ready, starts again, and changes nothing. One that
// doesn't know enough is refused from the beginning of the migration on that it would not work with.
func TestOlderBinaryBesideANewerOne(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	own, next := schema.Own, map[string]string{"9000_next": olaptest.Additive}
	works := func(who string, series schema.Series, want bool) {
		t.Helper()
		state, err := series.Status(ctx, db)
		if err != nil || state.Works() != want {
			t.Errorf("%s: %+v works %v, want %v (%v)", who, state, state.Works(), want, err)
		}
		if err := series.Up(ctx, db); (err == nil) != want || err != nil && !errors.Is(err, schema.ErrNewerStore) {
			t.Errorf("%s: up ended with %v", who, err)
		}
	}
	newer := olaptest.Newer(t, next)
	if err := own.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if state, err := newer.Status(ctx, db); err != nil || state.Works() {
		t.Errorf("a newer binary works before its migration: %+v, %v", state, err)
	}
	if err := newer.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	works("newer", newer, true)
	works("own", own, true)
	if err := own.Down(ctx, db, 1); !errors.Is(err, schema.ErrNewerMigrations) {
		t.Errorf("down by the older one: %v", err)
	}
	if state, err := newer.Status(ctx, db); err != nil || !state.Current() {
		t.Errorf("the older one changed it to %+v, %v", state, err)
	}
	// A newer migration that is under way, or was interrupted, keeps the older binary from nothing.
	execute(t, db, "INSERT INTO schema_versions SELECT 9000, 1, toUnixTimestamp64Nano(now64(9))")
	works("own, while the newer one migrates", own, true)
	if err := newer.Up(ctx, db); err != nil {
		t.Fatal(err)
	}

	// The release after it removes what the one before no longer uses.
	next["9010_contract"] = "-- Works with binaries from 9000 on.\nALTER TABLE agents DROP COLUMN IF EXISTS nothing"
	contracted := olaptest.Newer(t, next)
	if err := contracted.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	works("newer, beside the one after it", newer, true)
	works("own, two releases behind", own, false)
	if got := floor(t, db); got != "9000 clean" {
		t.Errorf("a binary of the first release reads %s", got)
	}

	// One that says nothing works with no binary before it, from its beginning on.
	next["9020_breaking"] = "ALTER TABLE agents DROP COLUMN IF EXISTS nothing, DROP COLUMN first_stored_at_of_nothing"
	if err := olaptest.Newer(t, next).Up(ctx, db); err == nil {
		t.Error("the migration did not fail in its middle")
	}
	works("newer, beside a breaking one", contracted, false)
}

// A binary of the first release that rolls its migration back, or applies it again, knows nothing of newer ones: they
// are applied again.
func TestRollBackByTheFirstRelease(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	newer := olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive})
	if err := newer.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "INSERT INTO schema_migrations SELECT -1, 0, toUnixTimestamp64Nano(now64(9))")
	if state, err := newer.Status(ctx, db); err != nil || state.Version != 0 || state.Works() {
		t.Errorf("rolled back, the store is at %+v, %v", state, err)
	}
	execute(t, db, "INSERT INTO schema_migrations SELECT 100, 0, toUnixTimestamp64Nano(now64(9))",
		"DROP VIEW newer_count", "DROP TABLE newer_counts")
	if state, err := newer.Status(ctx, db); err != nil || state.Version != 100 || state.Works() {
		t.Errorf("applied again, the store is at %+v, %v", state, err)
	}
	if err := newer.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "SELECT * FROM newer_counts")
}
