package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A server goes on while a newer binary migrates its store, stays ready, and can be started again; keys from before and
// after hold. Where it does not work beside the newer one, it is not ready, and a start says the one thing to do.
func TestRollOut(t *testing.T) {
	flags := append(store(t), "--maintenance-share", "0")
	commandFlags := flags[:4]
	keeper, err := openStore(t.Context(), storeFlags{DataDir: flags[1], EngineLib: flags[3]},
		slog.New(slog.DiscardHandler))
	must(t, err)
	defer keeper.Close()
	base, admin, stop := started(t, flags...)
	ingestTwoDays(t, commandFlags)
	_, key := createKey(t, commandFlags)
	answers := func(base, admin string) {
		t.Helper()
		if code, text := get(t, admin+"/readyz", ""); code != 200 {
			t.Errorf("readyz: %d %s", code, text)
		}
		if code, text := post(t, base, key, totals); code != 200 || !strings.Contains(text, `"rows":[[2]]`) {
			t.Errorf("%d %s", code, text)
		}
	}
	answers(base, admin)
	olaptest.Migrate(t, keeper, olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive}))
	answers(base, admin)
	stop()
	base, admin, _ = started(t, flags...)
	answers(base, admin)
	_, key = createKey(t, commandFlags)
	answers(base, admin)
	ingestTwoDays(t, commandFlags) // again, which changes nothing
	answers(base, admin)
	if code, out, stderr := command(t, "", append([]string{"migrate", "status"}, commandFlags...)...); code != exitDone ||
		!strings.Contains(out, "newer than this binary, which works with it") {
		t.Errorf("%d %s %s", code, out, stderr)
	}

	const breaking = "ALTER TABLE agents DROP COLUMN IF EXISTS nothing"
	olaptest.Migrate(t, keeper, olaptest.Newer(t, map[string]string{
		"9000_next": olaptest.Additive, "9010_breaking": breaking,
	}))
	code, text := get(t, admin+"/readyz", "")
	if code != 503 || !strings.Contains(text, "works with binaries from 9010 on") {
		t.Errorf("readyz: %d %s", code, text)
	}
	code, _, stderr := command(t, "", append([]string{"keys", "list", "--org", "acme"}, commandFlags...)...)
	if said := strings.TrimSpace(stderr); code != exitFailed || !strings.HasSuffix(said, "upgrade runlens") ||
		strings.Contains(said, "migrate up") {
		t.Errorf("%d %s", code, stderr)
	}
}

// A store of before the first release is refused with one remedy.
func TestOlderStoreHasOneRemedy(t *testing.T) {
	store, flags := unmigrated(t, t.TempDir())
	db, err := store.DB()
	must(t, err)
	defer db.Close()
	if err := schema.Own.Down(context.Background(), db, 1); err != nil { // makes the tables of versions
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO schema_migrations SELECT 53, 0, toUnixTimestamp64Nano(now64(9))"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"keys", "list", "--org", "acme"}, {"migrate", "up"}} {
		code, _, stderr := command(t, "", append(args, flags...)...)
		if code != exitFailed || !strings.Contains(stderr, "start with an empty database or data directory") ||
			strings.Contains(stderr, "run 'runlens migrate up'") || strings.Contains(stderr, "run it again") {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}

// A backup is restored by a binary that is newer than the one that made it, and so is one of a store that an older
// binary made, whose tables keep what they were made with.
func TestRestoreWhatOlderBinariesMade(t *testing.T) {
	dir := t.TempDir()
	older, upgraded, inCells := filepath.Join(dir, "older"), filepath.Join(dir, "upgraded"), filepath.Join(dir, "in-cells")
	store, flags := unmigrated(t, filepath.Join(dir, "store"))
	olaptest.Migrate(t, store, olaptest.Release(t, schema.MigrationPlacement))
	const run = "INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at) VALUES ('acme', " +
		"'0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10', '0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10', 'COMPLETED', " +
		"'2026-01-01 09:30:00', '2026-01-01 09:31:00')" // is one of those of ingestTwoDays
	must(t, store.Conn().Exec(t.Context(), run))
	must(t, os.Mkdir(older, 0o700))
	for _, p := range []part{{backupRecords, schema.BackupRecords}, {backupLists, schema.BackupLists}} {
		if err := store.Backup(t.Context(), filepath.Join(older, p.folder), func(to string) string {
			return schema.BackupSQL(store.Database(), to, p.tables)
		}); err != nil {
			t.Fatal(err)
		}
	}
	noted := func(version uint) {
		t.Helper()
		text := fmt.Sprintf(`{"begun_at":"2026-11-24T19:00:00Z","schema":%d,"records":true}`, version)
		must(t, os.WriteFile(filepath.Join(older, backupNote), []byte(text), 0o600))
	}
	restore := func(backup, into string) (there []string, code int, said string) {
		t.Helper()
		there = []string{"--data-dir", filepath.Join(dir, into), "--engine-lib", flags[3]}
		code, out, stderr := command(t, "", append([]string{"engine", "restore", backup}, there...)...)
		return there, code, out + stderr
	}
	for version, want := range map[uint]string{99: "then upgrade", 9000: "or upgrade runlens"} {
		noted(version)
		if _, code, said := restore(older, "refused"); code != exitFailed || !strings.Contains(said, want) {
			t.Errorf("of schema %d: %d %s", version, code, said)
		}
	}
	noted(schema.MigrationPlacement)

	ingestTwoDays(t, flags) // by this binary, which upgrades the store
	backUp := func(to string) {
		t.Helper()
		if code, out, stderr := command(t, "", append([]string{"engine", "backup", to}, flags...)...); code != exitDone {
			t.Fatal(out, stderr)
		}
	}
	backUp(upgraded)
	const slots = "INSERT INTO placement (subject, cell, revision) SELECT 'slot:' || toString(number), 'one', 65536" +
		" FROM numbers(256)"
	must(t, store.Conn().Exec(t.Context(), slots))
	backUp(inCells)
	sample := olaptest.NewSample(2)
	for backup, want := range map[string]struct {
		rows   string
		oldest uint
	}{
		older: {`"rows":[[1]]`, 100}, upgraded: {`"rows":[[2]]`, 100},
		inCells: {`"rows":[[2]]`, schema.MigrationMoves}, // which other binaries would misread
	} {
		if !sample.Try() {
			continue
		}
		there, code, said := restore(backup, "of-"+filepath.Base(backup))
		if code != exitDone {
			t.Errorf("%s: %d %s", backup, code, said)
			continue
		}
		restored, _ := unmigrated(t, there[1])
		if state, err := schemaOf(t.Context(), restored); err != nil || state.Oldest != want.oldest {
			t.Errorf("%s: %+v, %v, want %d", backup, state, err, want.oldest)
		}
		base, _, stop := started(t, there...)
		_, key := createKey(t, there)
		if code, text := post(t, base, key, totals); code != 200 || !strings.Contains(text, want.rows) {
			t.Errorf("%s: %d %s, want %s", backup, code, text, want.rows)
		}
		stop()
	}
}

// Binaries that don't know cells would answer from one for all organizations, those that don't know moves for some that
// are elsewhere. A store that was copied refuses them before anything else opens it.
func TestWhatACopyOfACellRefuses(t *testing.T) {
	store, _ := unmigrated(t, t.TempDir())
	olaptest.Migrate(t, store, schema.Own)
	for _, c := range []struct {
		placed string
		oldest uint
	}{
		{"", 100}, {"'self', 'one', 1", schema.MigrationPlacement}, {"'slot:7', 'one', 1", schema.MigrationPlacement},
		{"'slot:7', 'one', 65536", schema.MigrationMoves},
	} {
		if c.placed != "" {
			err := store.Conn().Exec(t.Context(), "INSERT INTO placement (subject, cell, revision) VALUES ("+c.placed+")")
			must(t, err)
		}
		must(t, requireOfCopy(t.Context(), store))
		if state, err := schemaOf(t.Context(), store); err != nil || state.Oldest != c.oldest {
			t.Errorf("%s: %+v, %v, want %d", c.placed, state, err, c.oldest)
		}
	}
}
