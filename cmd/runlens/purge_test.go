package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	server "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/rollup"
)

// joined is a connection to the store of the flags.
func joined(t *testing.T, flags []string) driver.Conn {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	store, err := openMigrated(context.Background(), storeFlags{DataDir: flags[1], EngineLib: flags[3]}, logger)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return store.Conn()
}

func counted(t *testing.T, conn driver.Conn, query string, args ...any) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// refreshed refreshes everything that is stored, and checks it.
func refreshed(t *testing.T, conn driver.Conn, flags []string) {
	t.Helper()
	must(t, rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(context.Background()))
	if code, out, stderr := command(t, "", append([]string{"rollup", "check"}, flags...)...); code != 0 {
		t.Errorf("check ended with %d:\n%s%.2000s", code, out, stderr)
	}
}

// A purge whose process is paused for so long that another one takes the tables over ends with 1 and says so,
// leaves nothing wrong, and can be run again.
func TestStoppedPurge(t *testing.T) {
	t.Parallel() // it waits more than it works
	ctx := context.Background()
	flags := store(t)
	file := filepath.Join(t.TempDir(), "a.ndjson")
	export(t, file, "acme", 2000)
	if code, _, stderr := command(t, "", append([]string{"ingest", file}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	conn := joined(t, flags)
	refreshed(t, conn, flags)

	exec := func(statement string) {
		t.Helper()
		must(t, conn.Exec(ctx, statement))
	}
	purge := append([]string{"purge", "--org", "acme", "--person", "p7@example.com", "--yes"}, flags...)
	exec("SYSTEM STOP MERGES rollup_attributions") // so that the first statement does not end
	p := spawn(t, purge...)
	const mutating = "SELECT count() FROM system.mutations WHERE table = 'rollup_attributions' AND NOT is_done"
	for counted(t, conn, mutating) == 0 {
		select {
		case <-p.ended:
			t.Fatalf("the purge ended:\n%s", p.err.String())
		default:
		}
	}
	must(t, p.Process.Signal(syscall.SIGSTOP))
	exec("SYSTEM START MERGES rollup_attributions")
	must(t, rollup.Rebuild(ctx, conn))
	refreshed(t, conn, flags)
	must(t, p.Process.Signal(syscall.SIGCONT))
	<-p.ended
	if code := p.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(p.err.String(), "the claim was lost") {
		t.Errorf("the stopped purge ended with %d, want 1 and that its claim was lost:\n%s", code, p.err.String())
	}
	refreshed(t, conn, flags)
	if n := counted(t, conn, "SELECT uniqExact(initiator_key) FROM rollup_runs"); n != 50 {
		t.Errorf("%d people are counted, want all 50 that the runs name", n)
	}
	if code, _, stderr := command(t, "", purge...); code != 0 {
		t.Fatalf("the second purge ended with %d: %s", code, stderr)
	}
	refreshed(t, conn, flags)
	for _, left := range []string{
		"SELECT count() FROM attributions WHERE user_identifier = 'p7@example.com'",
		"SELECT count() FROM runs WHERE tupleElement(record, 'initiator_identifier') = 'p7@example.com'",
		"SELECT count() FROM initiator_keys WHERE initiator_identifier = 'p7@example.com'",
		"SELECT count() FROM purge_targets",
	} {
		if n := counted(t, conn, left); n != 0 {
			t.Errorf("%d rows are left: %s", n, left)
		}
	}
}

// unread are the system tables that have nothing of the store's and do harm when they are read: models starts a
// process, which may end the engine, stack_trace interrupts every thread, symbols needs a right that nobody has, and
// unicode takes ten seconds.
var unread = []string{"models", "stack_trace", "symbols", "jemalloc_profile_text", "unicode"}

// found names the files below dir and the tables of the engine, system tables included, that have each of some texts.
func found(t *testing.T, conn driver.Conn, dir string, texts ...string) map[string][]string {
	t.Helper()
	places := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // gone since
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			// ClickHouse compresses columns with LZ4, in which the first occurrence of a text that has nothing in
			// common with others stays as it is.
			if err == nil && (bytes.Contains(content, []byte(text)) || strings.Contains(path, text)) {
				places[text] = append(places[text], path)
			}
		}
		return nil
	})
	must(t, err)
	var tables []string
	err = conn.QueryRow(context.Background(), "SELECT groupArray(database || '.' || name) FROM system.tables"+
		" WHERE database IN ('system', currentDatabase()) AND name NOT IN {unread:Array(String)}",
		server.Named("unread", unread)).Scan(&tables)
	must(t, err)
	// Each text in two pieces: the statement itself is in system.processes.
	var begins, ends []string
	for _, text := range texts {
		begins, ends = append(begins, text[:4]), append(ends, text[4:])
	}
	read := 0
	for _, table := range tables {
		var inTable []string
		err := conn.QueryRow(context.Background(), "WITH"+
			" arrayMap((a, b) -> a || b, {begins:Array(String)}, {ends:Array(String)}) AS texts"+
			" SELECT groupUniqArrayArray(arrayFilter(x -> position(line, x) > 0, texts))"+
			" FROM (SELECT formatRow('JSONEachRow', *) AS line FROM (SELECT * FROM "+table+" LIMIT 50000))",
			server.Named("begins", begins), server.Named("ends", ends)).Scan(&inTable)
		if err != nil {
			t.Logf("%s is not read: %.150v", table, err)
			continue
		}
		read++
		for _, text := range inTable {
			places[text] = append(places[text], table)
		}
	}
	if read < len(tables)-3 {
		t.Errorf("only %d of %d tables are read", read, len(tables))
	}
	return places
}

// After a purge nothing in the data directory and in the engine names who was purged: not the identifier, no name, no
// matter in which versions and records they were and which queries failed; after the purge of an organization, its
// id neither.
func TestPurgeLeavesNothing(t *testing.T) {
	ctx := context.Background()
	flags := store(t)
	conn := joined(t, flags)
	const organization, identifier = "Vq8wYk-org", "Xk7qzWv3j@Jt9.example"
	names := []string{"Gf5uOq Hz2b", "Wd4rLy Ub8s", "Mc6tPe Kn1a", "Rj3yBi Ov7d"}
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	run := func(n int, who, name, updated string) string {
		return fmt.Sprintf(`{"record":"run","organization_id":%q,"run_id":%q,"agent_id":%q,"status":"RUNNING",`+
			`"initiator_identifier":%s,"initiator_name":%s,"created_at":"2026-01-05T10:00:00Z","updated_at":%q}`,
			organization, id(n), id(99), who, name, updated)
	}
	attribution := func(n, ofRun int, name string) string {
		return fmt.Sprintf(`{"record":"attribution","organization_id":%q,"attribution_id":%q,"run_id":%q,"agent_id":%q,`+
			`"user_identifier":%q,"user_name":%q,"activity_type":"initiated","run_initiation_type":"human","source":"web",`+
			`"occurred_at":"2026-01-05T10:00:00Z"}`,
			organization, id(n), id(ofRun), id(99), identifier, name)
	}
	quoted := `"` + identifier + `"`
	for _, batch := range []string{
		run(1, quoted, `"`+names[0]+`"`, "2026-01-05T10:00:00Z") + "\n" + attribution(1, 1, names[0]),
		// A newer version without the identifier, with another name.
		run(1, "null", `"`+names[1]+`"`, "2026-01-06T10:00:00Z"),
		// Only an attribution record names the person.
		run(2, "null", `"`+names[2]+`"`, "2026-01-05T10:00:00Z") + "\n" + attribution(2, 2, "Ada"),
		// Only the name does.
		run(3, "null", `"`+names[3]+`"`, "2026-01-05T10:00:00Z") + "\n" + attribution(3, 9, names[3]),
		run(4, `"zoe@example.com"`, `"Zoe"`, "2026-01-05T10:00:00Z"),
	} {
		if code, _, stderr := command(t, batch, append([]string{"ingest", "-"}, flags...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	refreshed(t, conn, flags)
	dir := filepath.Join(flags[1], "engine")

	// Queries that name the person fail in every way that a user can bring about.
	failing := func(ctx context.Context, id string, settings server.Settings) {
		t.Helper()
		var n uint64
		err := conn.QueryRow(server.Context(ctx, server.WithQueryID(id), server.WithSettings(settings)),
			"SELECT uniqExact(number, {who:String}) FROM system.numbers WHERE toString(number) != {who:String}",
			server.Named("who", identifier)).Scan(&n)
		if err == nil {
			t.Errorf("the query %s did not fail", id)
		}
	}
	running := func(id string) bool {
		const same = "SELECT count() FROM system.processes WHERE query_id = {id:String}"
		return counted(t, conn, same, server.Named("id", id)) > 0
	}
	failing(ctx, "memory", server.Settings{"max_memory_usage": 1 << 20})
	failing(ctx, "time", server.Settings{"max_execution_time": 1})
	canceled, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failing(canceled, "cancelled", server.Settings{"readonly": 2, "cancel_http_readonly_queries_on_client_close": 1})
	}()
	for !running("cancelled") {
	}
	cancel()
	<-ended
	for running("cancelled") {
	}

	texts := append([]string{strings.ToLower(identifier)}, names...)
	before := found(t, conn, dir, append(texts, identifier, organization)...)
	for _, text := range append(texts, organization) {
		if len(before[text]) < 2 {
			t.Errorf("before the purge %q is found only in %v: this test would not see it", text, before[text])
		}
	}
	if len(before[identifier]) > 0 {
		t.Errorf("failed queries left the identifier in %v", before[identifier])
	}
	purge := func(args ...string) {
		t.Helper()
		for _, mode := range []string{"--dry-run", "--yes"} {
			line := append(append([]string{"purge", "--org", organization, mode}, args...), flags...)
			if code, out, stderr := command(t, "", line...); code != 0 {
				t.Fatalf("%d\n%s%s", code, out, stderr)
			}
		}
	}
	purge("--person", identifier)
	if places := found(t, conn, dir, append(texts, identifier)...); len(places) > 0 {
		t.Errorf("after the purge of the person: %v", places)
	}
	refreshed(t, conn, flags)
	if n := counted(t, conn, "SELECT count() FROM runs FINAL"); n != 4 {
		t.Errorf("%d runs, want all 4", n)
	}
	if n := counted(t, conn, "SELECT count() FROM runs WHERE tupleElement(record, 'initiator_name') = 'Zoe'"); n != 1 {
		t.Error("the name of another person is gone")
	}
	purge()
	// The audit log stays, and says that the organization was purged (schema/decisions/audit-log.md).
	var audited string
	if err := conn.QueryRow(ctx, "SELECT toString(uuid) FROM system.tables WHERE name = "+
		"'audit_log'").Scan(&audited); err != nil {
		t.Fatal(err)
	}
	places := slices.DeleteFunc(found(t, conn, dir, organization)[organization], func(place string) bool {
		return strings.Contains(place, audited) || strings.HasSuffix(place, ".audit_log")
	})
	if len(places) > 0 {
		t.Errorf("after the purge of the organization: %v", places)
	}
}
