package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// Exports in every format hold little more than the program does for one row, and have every row.
func TestQueryMemory(t *testing.T) {
	const users, more = 32_000, 16 << 10 // the latter in KiB: less than all rows take
	flags := store(t)
	base, _, _ := started(t, append(flags, "--rate-limit-per-minute", "100000")...)
	office{flags: flags, base: base}.desk(t, "acme")
	var lines strings.Builder
	for n := range users {
		fmt.Fprintf(&lines, `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED",`+
			`"initiator_identifier":"somebody-%06d.%s@example.com","initiator_name":"%s","initiator_type":"internal",`+
			`"created_at":"2026-01-01T09:30:00Z","updated_at":"2026-06-01T09:31:00Z"}`+"\n",
			n, n, strings.Repeat("x", 180), strings.Repeat("A Name ", 30))
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	folder := t.TempDir()
	exported := func(format string, args ...string) (peak int, said string) {
		t.Helper()
		p := exec.Command(os.Args[0], slices.Concat([]string{"query", "--dimensions", "user_identifier,agent_id,day",
			"--output", format, "-o", filepath.Join(folder, "export")}, args, strings.Fields(january))...)
		p.Env = append(os.Environ(), commandVariable+"=1")
		var stderr bytes.Buffer
		p.Stderr = &stderr
		must(t, p.Start())
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		for {
			select {
			case err := <-ended:
				if err != nil || peak == 0 {
					t.Fatal(format, err, peak, stderr.String())
				}
				t.Logf("%s: %d MiB", format, peak>>10)
				return peak, stderr.String()
			case <-time.After(10 * time.Millisecond):
				peak = max(peak, peakOf(p.Process.Pid))
			}
		}
	}
	oneRow, _ := exported("csv", "--limit", "1")
	for _, format := range olaptest.Some(4, "csv", "json", "xlsx", "parquet") {
		peak, said := exported(format, "--all")
		if !strings.Contains(said, fmt.Sprintf("%d rows as of", users)) {
			t.Errorf("%s: %s", format, said)
		}
		if peak > oneRow+more {
			t.Errorf("%s held %d MiB, and one row %d", format, peak>>10, oneRow>>10)
		}
	}
}

// peakOf is the most KiB that a process has held so far; 0 when it has ended. What the operating system says at the
// end would count the test's own memory, from before the program began.
func peakOf(pid int) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Sscan(rest, &kib)
	return kib
}
