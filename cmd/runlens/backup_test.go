package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// people are records of ada, of bob, and of an attribution record that was sent under two clocks and a run that moved.
func people(t *testing.T, path string) {
	t.Helper()
	var lines []string
	for i := range 40 {
		who, at := []string{"ada@x.example", "bob@x.example"}[i%2], fmt.Sprintf("2026-01-%02dT10:00:00Z", 1+i/2)
		id := olaptest.ID(i).String()
		run := `{"record":"run","organization_id":"acme","run_id":"%s","agent_id":"%s","status":"COMPLETED",` +
			`"initiator_identifier":"%s","created_at":"%s","updated_at":"%s"}`
		attribution := `{"record":"attribution","organization_id":"acme","attribution_id":"%[1]s","run_id":"%[1]s",` +
			`"agent_id":"%[1]s","user_identifier":"%s","activity_type":"interacted","run_initiation_type":"human",` +
			`"source":"web","occurred_at":"%s"}`
		lines = append(lines, fmt.Sprintf(run, id, id, who, at, at), fmt.Sprintf(attribution, id, who, at))
		if i == 1 || i == 2 {
			moved := "2026-02-01T10:00:00Z"
			lines = append(lines, fmt.Sprintf(run, id, id, who, moved, moved), fmt.Sprintf(attribution, id, who, moved))
		}
	}
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
}

// answersOf are the answers of a server on a store to questions that read every table of records.
func answersOf(t *testing.T, base, key string) string {
	t.Helper()
	said := ""
	for _, question := range []string{
		`"model":"agent_runs","metrics":["run_count","run_success_rate","unique_initiator_count"]`,
		`"model":"agent_runs","metrics":["run_count"],"dimensions":["day","agent_id"],"order":[{"member":"day",` +
			`"direction":"asc"}]`,
		`"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier"],"order":[` +
			`{"member":"run_count","direction":"desc"}]`,
		`"model":"agent_user_activity","metrics":["interaction_count","attributed_run_count",` +
			`"completed_attributed_run_count"]`,
		`"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["user_identifier"]`,
	} {
		code, text := post(t, base, key, "{"+question+
			`,"range":{"start":"2026-01-01","end":"2026-03-31","timezone":"Europe/Stockholm"}}`)
		var answer struct{ Rows json.RawMessage }
		if err := json.Unmarshal([]byte(text), &answer); code != 200 || err != nil {
			t.Fatalf("%d %s", code, text)
		}
		said += string(answer.Rows) + "\n"
	}
	return said
}

// A backup that is made while a server answers and records come in is restored into a new data directory, which then
// answers as the store did. Who was purged after the backup stays out, and what was revoked stays revoked, by the lists
// of a later backup.
func TestBackup(t *testing.T) {
	flags, dir := store(t), t.TempDir()
	run := func(want int, says string, args ...string) {
		t.Helper()
		code, out, stderr := command(t, "", args...)
		if code != want || !strings.Contains(out+stderr, says) {
			t.Fatalf("%q: %d, want %d and %q:\n%s%s", args, code, want, says, out, stderr)
		}
	}
	on := func(flags []string, args ...string) []string { return append(args, flags...) }
	records, more := filepath.Join(dir, "people.ndjson"), filepath.Join(dir, "more.ndjson")
	people(t, records)
	export(t, more, "busy", 1_000)
	run(exitDone, "", on(flags, "ingest", records)...)
	conn := joined(t, flags)
	everyTable(t, conn)
	refreshed(t, conn, flags) // what moved counts twice until then
	base, _, stop := started(t, flags...)
	_, key := createKey(t, flags)
	revokedID, revoked := createKey(t, flags)

	ingesting := spawn(t, on(flags, "ingest", more)...)
	monday, latest := filepath.Join(dir, "monday"), filepath.Join(dir, "latest")
	run(exitDone, "backed up", on(flags, "engine", "backup", monday)...)
	before := answersOf(t, base, key)
	run(exitUsage, "must be a new one", on(flags, "engine", "backup", monday)...)
	run(exitDone, "", on(flags, "purge", "--org", "acme", "--person", "ada@x.example", "--yes")...)
	run(exitDone, "", on(flags, "keys", "revoke", revokedID)...)
	after := answersOf(t, base, key)
	if before == after || !strings.Contains(before, "ada@x.example") || strings.Contains(after, "ada@x.example") {
		t.Fatalf("before and after the purge:\n%s\n%s", before, after)
	}
	run(exitDone, "backed up", on(flags, "engine", "backup", "--lists", latest)...)
	run(exitFailed, "other processes use", on(flags, "engine", "restore", monday)...)
	<-ingesting.ended
	stop()

	there := []string{"--data-dir", filepath.Join(dir, "restored"), "--engine-lib", flags[3]}
	run(exitDone, "restored what was stored by 20", on(there, "engine", "restore", monday, "--lists", latest)...)
	base, _, stop = started(t, there...)
	if got := answersOf(t, base, key); got != after {
		t.Errorf("answers\n%swant\n%s", got, after)
	}
	if code, _ := post(t, base, revoked, totals); code != 401 {
		t.Errorf("a key that was revoked after the backup gets %d", code)
	}
	run(exitDone, "equals its base tables", on(there, "rollup", "check")...)
	// What came during the backup is whole once it is copied again.
	run(exitDone, "", on(there, "ingest", more)...)
	run(exitDone, "holds all that the source holds", on(there, "verify", "--subset", more)...)
	stop()
	run(exitFailed, "has been used", on(there, "engine", "restore", monday)...)

	// It moves on to a server, which is one of two cells from then on.
	server := elsewhere(t)
	run(exitDone, "are the same", on(there, "engine", "move", "--to", server[1], "--to-password-file", server[3])...)
	file := filepath.Join(dir, "cells.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "cells:\n- {name: a, url: %q, password_file: %q}\n"+
		"- {name: b, data_dir: b}\n", server[1], server[3]), 0o600); err != nil {
		t.Fatal(err)
	}
	there = append(there[2:], "--cells", file, "--data-dir", dir)
	base, _, stop = started(t, there...)
	if got := answersOf(t, base, key); got != after {
		t.Errorf("two cells answer\n%swant\n%s", got, after)
	}
	// The other cell has no organization yet.
	run(exitDone, "holds all that the source holds", on(there, "verify", "--subset", more)...)
	stop()
	run(exitUsage, "has lists only", "engine", "restore", latest)
	run(exitUsage, "must not be older", "engine", "restore", monday, "--lists", earlier(t, latest))
	run(exitUsage, "has no whole backup", "engine", "restore", dir)
}

// earlier makes a backup say that it began a year earlier.
func earlier(t *testing.T, dir string) string {
	t.Helper()
	n, err := readNote(dir)
	must(t, err)
	n.BegunAt = n.BegunAt.Add(-365 * 24 * time.Hour)
	text, err := json.Marshal(n)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, backupNote), text, 0o600)
	}
	must(t, err)
	return dir
}

// everyTable fails where nobody says of a table whether a backup has it: it is in it, derived, or of work in progress.
func everyTable(t *testing.T, conn driver.Conn) {
	t.Helper()
	known := slices.Concat(schema.BackupRecords, schema.BackupLists, schema.Derived(), []string{schema.TableRollupLog,
		schema.TableInsertCounters, schema.TableConflicts, schema.TableCheckpoints, schema.TablePurgeTargets,
		schema.TableReplacements, "schema_migrations", "schema_versions"})
	var tables []string
	if err := conn.QueryRow(t.Context(), "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase()"+
		" AND engine LIKE '%MergeTree' AND name NOT IN ?", known).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if len(tables) > 0 {
		t.Errorf("nobody says whether a backup has %q", tables)
	}
}

// The statements for a ClickHouse server are those that back the embedded engine up and restore it.
func TestBackupRecipe(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, "../../deploy/backup.md")), " ")
	for _, want := range []string{
		schema.BackupSQL("runlens", "Disk('backups', '2026-11-23-records');", schema.BackupRecords),
		schema.BackupSQL("runlens", "Disk('backups', '2026-11-23-lists');", schema.BackupLists),
		schema.RestoreSQL("runlens", "Disk('backups', '2026-11-25-lists')", schema.BackupLists) + ";",
		schema.RestoreSQL("runlens", "Disk('backups', '2026-11-23-records')", schema.BackupRecords) + ";",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("deploy/backup.md lacks %s", want)
		}
	}
}
