package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// After the purge of a person an old file brings nothing of before it back: ingest rejects it with exit code 3 and
// stores runs without the initiator, verify finds source and store equal, and what the person does later counts. After
// --lift everything comes in again.
func TestPurgedPersonStaysOut(t *testing.T) {
	flags := store(t)
	conn := joined(t, flags)
	dir := t.TempDir()
	write := func(name string, clock time.Time, n int) string {
		at, id := clock.UTC().Format(time.RFC3339), fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
		path := filepath.Join(dir, name)
		text := fmt.Sprintf(`{"record":"run","organization_id":"acme","run_id":%[1]q,"agent_id":%[1]q,"status":"RUNNING",`+
			`"initiator_identifier":"Ada@x.example","initiator_name":"Ada","created_at":%[2]q,"updated_at":%[2]q}`+"\n"+
			`{"record":"attribution","organization_id":"acme","attribution_id":%[1]q,"run_id":%[1]q,"agent_id":%[1]q,`+
			`"user_identifier":"ada@x.example","activity_type":"initiated","run_initiation_type":"human","source":"web",`+
			`"occurred_at":%[2]q}`+"\n", id, at)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	run := func(want int, says string, args ...string) {
		t.Helper()
		code, out, stderr := command(t, "", append(args, flags...)...)
		if code != want || !strings.Contains(out+stderr, says) {
			t.Errorf("%q: %d, want %d and %q:\n%s%s", args, code, want, says, out, stderr)
		}
	}
	before := write("before.ndjson", time.Now().Add(-time.Hour), 1)
	later := write("later.ndjson", time.Now().Add(time.Hour), 2)
	rejects := filepath.Join(dir, "rejects")
	person := []string{"purge", "--org", "acme", "--person", "ADA@x.example"}
	run(exitFailed, "nobody with this identifier", append(person, "--lift")...)
	run(exitDone, "attributions 1, rejected 0", "ingest", before)
	run(exitDone, "attributions: 1 rows deleted", append(person, "--yes")...)
	run(exitRejected, "runs 1 (1 without the initiator, who was purged), attributions 0, rejected 1",
		"ingest", "--rejects", rejects, before)
	if text, err := os.ReadFile(rejects); err != nil || !strings.Contains(string(text), `"line":2`) ||
		!strings.Contains(string(text), "purge --lift") {
		t.Errorf("%s %v", text, err)
	}
	run(exitDone, "runs 1, attributions 1, rejected 0", "ingest", later)
	run(exitDone, "exactly what the source holds, but for 1 records of people who were purged", "verify", before, later)
	refreshed(t, conn, flags)
	const ofAda = "SELECT count() FROM attributions FINAL WHERE user_identifier = 'ada@x.example'"
	if n := counted(t, conn, ofAda); n != 1 {
		t.Errorf("%d records of ada are stored, want that of later", n)
	}
	run(exitDone, "lifted", append(person, "--lift")...)
	run(exitDone, "runs 1, attributions 1, rejected 0", "ingest", before)
	run(exitDone, "the store holds exactly what the source holds:", "verify", before, later)
	refreshed(t, conn, flags)
	if n := counted(t, conn, ofAda); n != 2 {
		t.Errorf("%d records of ada are stored after --lift, want 2", n)
	}
	run(exitUsage, "--lift needs --person", "purge", "--org", "acme", "--lift")
}

// Several organizations are purged at once, others are not, and the audit log of each says so.
func TestPurgeOfSeveralOrganizations(t *testing.T) {
	flags := store(t)
	run := func(want int, contains, stdin string, args ...string) {
		t.Helper()
		code, out, stderr := command(t, stdin, append(args, flags...)...)
		if code != want || !strings.Contains(out+stderr, contains) {
			t.Errorf("%v ended with %d, want %d and %q:\n%s%s", args, code, want, contains, out, stderr)
		}
	}
	records := ""
	for _, organization := range []string{"acme", "globex", "initech"} {
		records += `{"record":"run","organization_id":"` + organization +
			`","run_id":"00000000-0000-4000-8000-000000000001","agent_id":"00000000-0000-4000-8000-000000000002",` +
			`"status":"RUNNING","created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-05T10:00:00Z"}` + "\n"
	}
	run(exitDone, "runs 3", records, "ingest", "-")
	several := []string{"purge", "--org", "acme", "--org", "globex", "--org", "acme"}
	run(exitUsage, "--person goes with one --org", "", append(several, "--person", "ada@x.example", "--dry-run")...)
	run(exitDone, "runs: 2 rows would be deleted", "", append(several, "--dry-run")...)
	run(exitDone, "runs: 2 rows deleted", "", append(several, "--yes")...)
	run(exitDone, "runs: 0 rows would be deleted", "", append(several, "--dry-run")...)
	run(exitDone, "runs: 1 rows would be deleted", "", "purge", "--org", "initech", "--dry-run")
	run(exitDone, "purge", "", "audit", "--org", "acme")
	run(exitDone, "purge", "", "audit", "--org", "globex")
}
