package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A signal ends an ingest whose input is open and idle: at once, with what was read stored and in the summary.
// The input is standard input, plain or packed, and a named pipe; the part of a record whose end has not come is
// none.
func TestASignalEndsAnIdleIngest(t *testing.T) {
	flags := store(t)
	gz, zst := packed(t, strings.Repeat(agentsNDJSON, 2))
	for name, c := range map[string]struct {
		input  []byte
		args   []string
		stored stored
	}{
		"records":        {[]byte(agentsNDJSON + agentsNDJSON + agentsNDJSON[:20]), []string{"-"}, stored{Agents: 2}},
		"gzip":           {gz, []string{"-"}, stored{Agents: 2}},
		"zstd":           {zst, []string{"-"}, stored{Agents: 2}},
		"CSV":            {[]byte(runsCSV), []string{"--format", "csv", "--record", "run", "-"}, stored{Runs: 2}},
		"no header yet":  {[]byte("run_id,"), []string{"--format", "csv", "--record", "run", "-"}, stored{}},
		"half a Parquet": {[]byte("PAR1...."), []string{"--format", "parquet", "--record", "run", "-"}, stored{}},
		"second source": {[]byte(agentsNDJSON), []string{fileOf(t, "a.ndjson", []byte(agentsNDJSON)), "-"},
			stored{Agents: 2}},
		"dry run": {[]byte(agentsNDJSON), []string{"--dry-run", "-"}, stored{Agents: 1}},
	} {
		in, out, err := os.Pipe()
		must(t, err)
		if _, err := out.Write(c.input); err != nil {
			t.Fatal(err)
		}
		p := spawnCommand(t, in, os.Args[0], append(append([]string{"ingest", "--json"}, c.args...), flags...)...)
		drained(t, p, in)
		interrupted(t, name, p, syscall.SIGTERM, c.stored)
		out.Close()
		in.Close()
	}
	verified(t, flags, "--subset", fileOf(t, "a.ndjson", []byte(agentsNDJSON)))
	verified(t, flags, "--subset", "--record", "run", fileOf(t, "runs.csv", []byte(runsCSV)))
}

// The same of named pipes, of which the opening waits for a writer, and a read for what it writes.
func TestASignalEndsAnIdlePipe(t *testing.T) {
	flags := store(t)
	fifo := filepath.Join(t.TempDir(), "agents.ndjson")
	must(t, syscall.Mkfifo(fifo, 0o600))
	// Without a writer, and standard input without a byte. When the rows of the file before are stored, the next one
	// is being opened.
	idle, held, err := os.Pipe()
	must(t, err)
	defer idle.Close()
	defer held.Close()
	for organization, waiting := range map[string]string{"globex": fifo, "initech": "-"} {
		first := fileOf(t, "first.ndjson", []byte(strings.ReplaceAll(agentsNDJSON, "acme", organization)))
		p := spawnCommand(t, idle, os.Args[0], append([]string{"ingest", "--json", first, waiting}, flags...)...)
		holds(t, p, func() bool {
			code, _, _ := command(t, "", append([]string{"verify", "--subset", first}, flags...)...)
			return code == exitDone
		})
		interrupted(t, waiting, p, syscall.SIGTERM, stored{Agents: 1})
	}

	p := spawnCommand(t, nil, os.Args[0], append([]string{"ingest", "--json", fifo}, flags...)...)
	out, err := os.OpenFile(fifo, os.O_RDWR, 0) // reads too, so that drained can tell what is left
	must(t, err)
	defer out.Close()
	if _, err := out.WriteString(agentsNDJSON + agentsNDJSON); err != nil {
		t.Fatal(err)
	}
	drained(t, p, out)
	interrupted(t, "without more to read", p, syscall.SIGTERM, stored{Agents: 2})
}

// interrupted sends a signal, and expects the end, the summary, and no word of a record that was refused.
func interrupted(t *testing.T, name string, p *process, by syscall.Signal, want stored) {
	t.Helper()
	must(t, p.Process.Signal(by))
	p.endsWithin(t, time.Minute)
	var got ingestSummary
	if err := json.Unmarshal(bytes.TrimSpace(p.out.Bytes()), &got); err != nil {
		t.Fatalf("%s: %v: %s %s", name, err, p.out.String(), p.err.String())
	}
	if got.Stored != want || got.Read != want.Agents+want.Runs || got.Rejected != 0 || got.Complete ||
		p.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%s ended with %v: %+v, want %+v\n%s", name, p.ProcessState, got, want, p.err.String())
	}
	if !strings.Contains(p.err.String(), "runlens: stopped before the end; what was read ") {
		t.Errorf("%s: %s", name, p.err.String())
	}
}

// drained waits until a process has read all that is in a pipe, of which this is a reading end.
func drained(t *testing.T, p *process, pipe *os.File) {
	t.Helper()
	holds(t, p, func() bool {
		left := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(left, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		return err == nil && left[0].Revents&unix.POLLIN == 0
	})
}

// holds waits for a condition that a running process brings about.
func holds(t *testing.T, p *process, condition func() bool) {
	t.Helper()
	if !harness.Poll(t.Context(), 2*time.Minute, time.Millisecond, func() bool {
		if condition() {
			return true
		}
		select {
		case <-p.ended:
			t.Fatalf("%v ended by itself: %v\n%s", p.Args[1:], p.ProcessState, p.err.String())
		default:
		}
		return false
	}) {
		t.Fatalf("%v: waited in vain:\n%s", p.Args[1:], p.err.String())
	}
}
