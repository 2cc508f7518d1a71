package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A key over its rate waits as the server says, here before the second page; an interrupt ends the wait, and the old
// file stays.
func TestQueryWaits(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, append(flags, "--rate-limit-per-minute", "1")...)
	d := office{flags: flags, base: base}.desk(t, "acme", "2026-01-01 a@x.example COMPLETED",
		"2026-01-02 a@x.example COMPLETED")
	file, body := fileOf(t, "old.csv", []byte("old")), fileOf(t, "body.json", []byte(firstDay+"}"))
	p, said := d.background("query", "--body", body, "--all", "-o", file)
	comesTrue(t, func() bool { return strings.Contains(said(), "waiting ") })
	p.Process.Signal(os.Interrupt)
	if err := p.Wait(); p.ProcessState.ExitCode() != exitFailed || !strings.Contains(said(), "interrupted") {
		t.Errorf("%v: %s", err, said())
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "old" {
		t.Errorf("the file holds %q, %v", content, err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// background starts a command as a process of its own; said is what it has written to standard error.
func (d *desk) background(args ...string) (p *exec.Cmd, said func() string) {
	d.t.Helper()
	file, err := os.Create(filepath.Join(d.t.TempDir(), "stderr"))
	must(d.t, err)
	p = exec.Command(os.Args[0], args...)
	p.Env, p.Stderr = append(os.Environ(), commandVariable+"=1"), file
	must(d.t, p.Start())
	d.t.Cleanup(func() { p.Process.Kill() })
	return p, func() string {
		content, err := os.ReadFile(file.Name())
		must(d.t, err)
		return string(content)
	}
}

// comesTrue waits for a minute at most.
func comesTrue(t *testing.T, condition func() bool) {
	t.Helper()
	if !harness.Poll(t.Context(), time.Minute, 10*time.Millisecond, condition) {
		t.Fatal("it did not happen within a minute")
	}
}

// Watching asks again and again, until an interrupt ends it as its user wants.
func queryWatch(t *testing.T, o office) {
	d := o.desk(t, "watch", "2026-01-01 a@x.example COMPLETED")
	file := filepath.Join(t.TempDir(), "x.csv")
	p, said := d.background(append([]string{"query", "-o", file, "--watch", "1s"}, strings.Fields(january)...)...)
	for range 2 {
		comesTrue(t, func() bool { return os.Remove(file) == nil })
	}
	p.Process.Signal(os.Interrupt)
	if err := p.Wait(); err != nil {
		t.Errorf("%v: %s", err, said())
	}
}
