package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal ends a command that waits for the other side of a pipe, whatever it wants the file for.
func TestASignalEndsWhatWaitsForAPipe(t *testing.T) {
	if !waitsAreShown(t) {
		t.Skip("this system does not show what a process waits for")
	}
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags)
	t.Setenv("RUNLENS_URL", base)
	t.Setenv("RUNLENS_API_KEY", key)
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	agents := fileOf(t, "agents.ndjson", []byte(agentsNDJSON))
	for args, code := range map[string]int{
		"query --metrics run_count --output csv -o PIPE": exitFailed,
		"query --body PIPE": exitFailed,
		"query @PIPE":       exitFailed,
		"query --metrics run_count --key-file PIPE":    exitFailed,
		"catalog --key-file PIPE":                      exitFailed,
		"login --key-file PIPE":                        exitFailed,
		"console --listen 127.0.0.1:0 --key-file PIPE": exitFailed,
		"mcp --key-file PIPE":                          exitFailed,
		"explain --org acme --body PIPE":               exitFailed,
		"ingest --dry-run --rejects PIPE " + agents:    exitFailed,

		"worker --source postgres://nobody@127.0.0.1:1/none --rejects PIPE": exitDone,
		"worker --source postgres://nobody@127.0.0.1:1/none --mapping PIPE": exitDone,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe.yaml")
			must(t, syscall.Mkfifo(pipe, 0o600))
			p := spawn(t, strings.Fields(strings.ReplaceAll(args, "PIPE", pipe))...)
			holds(t, p, func() bool { return opensPipe(p.Process.Pid) })
			must(t, p.Process.Signal(syscall.SIGTERM))
			p.endsWithin(t, time.Minute)
			if got := p.ProcessState.ExitCode(); got != code || strings.Count(p.err.String(), "\n") != 1 {
				t.Errorf("ended with %v, want exit code %d and a line:\n%s", p.ProcessState, code, p.err.String())
			}
		})
	}
}

// opensPipe reports whether a thread of a process waits for the other side of a pipe that it opens.
func opensPipe(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", pid))
	for _, task := range tasks {
		if waits, err := os.ReadFile(task); err == nil && string(waits) == "wait_for_partner" {
			return true
		}
	}
	return false
}

// waitsAreShown reports whether the kernel says what a process waits for.
func waitsAreShown(t *testing.T) bool {
	t.Helper()
	sleep := exec.Command("sleep", "60")
	must(t, sleep.Start())
	defer sleep.Wait()
	defer sleep.Process.Kill()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		waits, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", sleep.Process.Pid))
		if err == nil && strings.Contains(string(waits), "nanosleep") {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

// Only start.go, serve.go and ingest.go decide what a signal does, so that no command becomes deaf by itself.
func TestSignalsAreNotedInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		switch text, err := os.ReadFile(file); {
		case err != nil:
			t.Fatal(err)
		case file == "start.go" || file == "serve.go" || file == "ingest.go" || strings.HasSuffix(file, "_test.go"):
		case strings.Contains(string(text), "signal.Notify"):
			t.Errorf("%s has a way of its own to deal with signals: use interruptible", file)
		}
	}
}
