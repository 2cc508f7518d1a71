package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// The command names what is damaged, and ends with 1. A server that runs repairs it by itself.
func TestServerRepairsTheRollup(t *testing.T) {
	t.Parallel() // it waits more than it works
	flags := store(t)
	file := filepath.Join(t.TempDir(), "a.ndjson")
	export(t, file, "acme", 2000)
	if code, _, stderr := command(t, "", append([]string{"ingest", file}, flags...)...); code != 0 {
		t.Fatalf("ingest ended with %d: %.2000s", code, stderr)
	}
	conn := joined(t, flags)
	refreshed(t, conn, flags)
	const damage = "ALTER TABLE rollup_runs DELETE WHERE toDayOfMonth(created_at) = 2 SETTINGS mutations_sync = 2"
	must(t, conn.Exec(context.Background(), damage))
	check := func() (int, string) {
		code, out, _ := command(t, "", append([]string{"rollup", "check"}, flags...)...)
		return code, out
	}
	// Runs were created every minute: 1,440 on the first day, the others on the second.
	const named = "rollup_runs, organization acme, 2026-Q1: 2000 records in the source, 1440 refreshed"
	if code, out := check(); code != 1 || !strings.Contains(out, named) {
		t.Errorf("check ended with %d:\n%s", code, out)
	}
	server := spawn(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off"}, flags...)...)
	code, out := 1, ""
	if !harness.Poll(t.Context(), 3*time.Minute, 100*time.Millisecond, func() bool {
		if counted(t, conn, "SELECT toUInt64(sum(runs)) FROM rollup_runs") == 2000 {
			code, out = check()
		}
		return code == 0
	}) {
		t.Fatalf("nobody repairs it; check ended with %d:\n%s", code, out)
	}
	server.Process.Kill()
	<-server.ended
}

// Where nothing can be compared nothing is proved: no organization of that name, no source, no refresh.
func TestNothingComparedIsNotEqual(t *testing.T) {
	flags := store(t)
	file := fileOf(t, "a.ndjson", []byte(agentsNDJSON))
	empty := fileOf(t, "empty.ndjson", nil)
	fails := func(args ...string) {
		t.Helper()
		code, out, stderr := command(t, "", append(args, flags...)...)
		if code != exitFailed || !strings.Contains(stderr, "nothing was compared: ") || strings.Contains(out, "equal") ||
			strings.Contains(out, "holds") {
			t.Errorf("%v ended with %d:\n%s%s", args, code, out, stderr)
		}
	}
	fails("rollup", "check")
	fails("verify", empty)
	if code, _, stderr := command(t, "", append([]string{"ingest", file}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	verified(t, flags, file)
	fails("verify", "--org", "nobody", file)
	fails("verify", "--subset", empty)
	fails("verify", "--subset", "--json", "--org", "nobody", file)
	fails("rollup", "check")

	runs := fileOf(t, "runs.csv", []byte(runsCSV))
	if code, _, stderr := command(t, "", append([]string{"ingest", "--record", "run", runs}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	fails("rollup", "check") // not refreshed yet
	refreshed(t, joined(t, flags), flags)
}
