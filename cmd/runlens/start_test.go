package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/schema"
)

// starts are the commands that open and migrate a store first, with a file to ingest.
func starts(t *testing.T) map[string][]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agents.ndjson")
	must(t, os.WriteFile(file, []byte(agentsNDJSON), 0o600))
	return map[string][]string{
		"serve":   {"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off"},
		"worker":  {"worker", "--source", "postgres://nobody@127.0.0.1:1/nothing", "--admin-listen", "off"},
		"ingest":  {"ingest", file},
		"keys":    {"keys", "list", "--org", "acme"},
		"migrate": {"migrate", "up"},
	}
}

// endsWithin waits for a process, which must have ended long before the patience of this test is over.
func (p *process) endsWithin(t *testing.T, patience time.Duration) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.Process.Kill()
		<-p.ended
		t.Fatalf("%v has not ended within %v:\n%s", p.Args[1:], patience, p.err.String())
	}
}

// failsClearly expects exit code 1 and one line about the step and its cause, after the log.
func (p *process) failsClearly(t *testing.T, says ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(p.err.String()) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	if p.ProcessState.ExitCode() != exitFailed || len(lines) != 1 {
		t.Fatalf("%v ended with %d and %d lines:\n%s", p.Args[1:], p.ProcessState.ExitCode(), len(lines), p.err.String())
	}
	for _, words := range says {
		if !strings.Contains(lines[0], words) {
			t.Errorf("%v: %q does not say %q", p.Args[1:], lines[0], words)
		}
	}
}

// unmigrated is an embedded engine without tables, kept running, and the flags that reach it.
func unmigrated(t *testing.T, dir string) (*clickhouse.Server, []string) {
	t.Helper()
	flags := storeFlags{DataDir: dir, EngineLib: clickhousetest.Library()}
	keeper, err := openStore(context.Background(), flags, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { keeper.Close() })
	return keeper, []string{"--data-dir", dir, "--engine-lib", flags.EngineLib}
}

// Where the versions of the schema cannot be recorded, every command ends with one clear line, and works once they
// can be.
func TestStartWhereVersionsCannotBeRecorded(t *testing.T) {
	dir := t.TempDir()
	keeper, flags := unmigrated(t, dir)
	db, err := keeper.DB()
	must(t, err)
	defer db.Close()
	if err := schema.Own.Down(context.Background(), db, 1); err != nil { // makes the tables of versions
		t.Fatal(err)
	}
	if _, err := db.Exec("ALTER TABLE schema_migrations ADD CONSTRAINT nothing CHECK version < 0"); err != nil {
		t.Fatal(err)
	}
	for name, args := range starts(t) {
		p := spawn(t, append(args, flags...)...)
		p.endsWithin(t, 2*time.Minute)
		step := "cannot apply the migrations: "
		if name == "migrate" {
			step = "cannot change the schema: "
		}
		p.failsClearly(t, step, "469 VIOLATED_CONSTRAINT", "see ClickHouse's log")
	}
	if _, err := db.Exec("ALTER TABLE schema_migrations DROP CONSTRAINT nothing"); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, append(starts(t)["keys"], flags...)...)
	if p.endsWithin(t, 2*time.Minute); p.ProcessState.ExitCode() != exitDone {
		t.Errorf("afterwards keys list ended with %v:\n%s", p.ProcessState, p.err.String())
	}
}

// The same on a disk that is really full: a small file system in memory, filled to the last byte.
func TestStartOnAFullDisk(t *testing.T) {
	dir := clickhousetest.MemoryDisk(t, "32m")
	_, flags := unmigrated(t, filepath.Join(dir, "data"))
	filler := fill(t, dir)
	for _, args := range starts(t) {
		p := spawn(t, append(args, flags...)...)
		p.endsWithin(t, 2*time.Minute)
		p.failsClearly(t, "the disk of ClickHouse is full; free some space and start again")
	}
	must(t, os.Remove(filler))
	p := spawn(t, append(starts(t)["keys"], flags...)...)
	if p.endsWithin(t, 2*time.Minute); p.ProcessState.ExitCode() != exitDone {
		t.Errorf("with space again keys list ended with %v:\n%s", p.ProcessState, p.err.String())
	}
}

// fill fills the file system of a folder with one file, whose path it returns, to the last byte.
func fill(t *testing.T, dir string) string {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer file.Close()
	if _, err := io.Copy(file, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return file.Name()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A store that takes connections and never answers delays no command: the first signal ends it, over both protocols.
func TestASignalEndsAHungStart(t *testing.T) {
	for _, scheme := range []string{"http", "clickhouse"} {
		for name, args := range starts(t) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			connected := make(chan net.Conn, 100)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					connected <- conn // and nothing is ever read or written
				}
			}()
			p := spawn(t, append(args, "--clickhouse-url", scheme+"://"+listener.Addr().String()+"/runlens")...)
			select {
			case <-connected:
			case <-p.ended:
				t.Fatalf("%s ended by itself:\n%s", name, p.err.String())
			}
			must(t, p.Process.Signal(syscall.SIGTERM))
			// Far less than any time limit of a start.
			p.endsWithin(t, 9*time.Second)
			listener.Close()
		}
	}
}

// A step ends with its limit or its context, also when what it does never ends; what comes of it later is thrown away.
func TestStartStepsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := startStep{"bake a cake", time.Minute, "check the oven"}
		release, discarded := make(chan struct{}), make(chan int, 2)
		stuck := func(context.Context) (int, error) {
			<-release
			return 7, nil
		}
		discard := func(late int) { discarded <- late }
		began := time.Now()
		if _, err := within(t.Context(), step, discard, stuck); !errors.Is(err, context.DeadlineExceeded) ||
			err.Error() != "cannot bake a cake: it did not end within 1m0s; check the oven" {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute+abandonStepAfter {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		if _, err := within(ctx, step, discard, stuck); !errors.Is(err, context.Canceled) ||
			err.Error() != "stopped before it could bake a cake" {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second+abandonStepAfter {
			t.Errorf("it took %v", took)
		}
		close(release)
		if a, b := <-discarded, <-discarded; a != 7 || b != 7 {
			t.Errorf("%d and %d were thrown away", a, b)
		}
		failed := func(context.Context) (int, error) { return 0, errors.New("no flour\nno eggs") }
		if _, err := within(t.Context(), step, discard, failed); err == nil ||
			err.Error() != "cannot bake a cake: no flour; no eggs; check the oven" {
			t.Error(err)
		}
	})
}
