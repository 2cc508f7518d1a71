package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A tester runs tests with and without mutants. It is safe for concurrent use.
type tester struct {
	root    string // of the repository
	dir     string // for mutants
	timeout time.Duration

	mu      sync.Mutex
	without map[string]outcome // by package and tests, of what passes or fails without a mutant
}

// An outcome is that of tests.
type outcome struct {
	built    bool
	ran      bool   // at least one test
	failed   string // the first test that failed; empty for none
	timedOut bool
	output   string
}

// kill runs a mutant's tests and returns what is said of it.
func (t *tester) kill(ctx context.Context, m mutant) (verdict string, killed bool) {
	content, err := m.apply(t.root)
	if err != nil {
		return "NOT APPLICABLE: " + err.Error(), false
	}
	overlay, err := t.overlay(m, content)
	if err != nil {
		return "ERROR: " + err.Error(), false
	}
	o, err := t.test(ctx, m, "-overlay", overlay)
	switch {
	case err != nil:
		return "ERROR: " + err.Error(), false
	case !o.built:
		return "DOES NOT COMPILE:\n" + o.output, false
	case !o.ran:
		return "ERROR: " + m.pkg + " has no test " + m.tests, false
	case o.failed == "" && !o.timedOut:
		return "SURVIVED", false
	}
	switch clean, err := t.clean(ctx, m); {
	case err != nil:
		return "ERROR: " + err.Error(), false
	case clean.failed != "" || clean.timedOut || !clean.built:
		return "ERROR: the tests fail without it:\n" + clean.output, false
	case o.timedOut:
		return fmt.Sprintf("killed: %s did not end within %s", m.tests, t.timeout), true
	}
	return "killed by " + o.failed, true
}

// clean runs a mutant's tests without it, once for all mutants that share them.
func (t *tester) clean(ctx context.Context, m mutant) (o outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := m.pkg + " " + m.tests
	o, known := t.without[key]
	if !known {
		if o, err = t.test(ctx, m); err == nil {
			t.without[key] = o
		}
	}
	return o, err
}

// overlay writes the file of a mutant, and the file that tells go of it. The working tree stays as it is.
func (t *tester) overlay(m mutant, content string) (name string, err error) {
	changed := filepath.Join(t.dir, fmt.Sprintf("%d-%s", m.number, filepath.Base(m.file)))
	if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(t.root, filepath.FromSlash(m.file)): changed}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(t.dir, fmt.Sprintf("%d.json", m.number))
	return name, os.WriteFile(name, text, 0o600)
}

// test runs the tests of a mutant.
func (t *tester) test(ctx context.Context, m mutant, flags ...string) (o outcome, err error) {
	args := append([]string{"test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout", t.timeout.String(),
		"-run", m.tests}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, m.pkg)...)
	cmd.Dir = t.root
	// With go ends the test that it started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	o = read(stdout)
	if o.output += stderr.String(); err != nil && o.built && o.failed == "" && !o.timedOut {
		return o, fmt.Errorf("go test: %w\n%s", err, o.output)
	}
	return o, nil
}

// read reads the events that go test -json prints.
func read(events []byte) (o outcome) {
	o.built = true
	var output strings.Builder
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal(line, &e) != nil {
			output.Write(line)
			continue
		}
		output.WriteString(e.Output)
		switch {
		case e.Action == "build-fail" || e.FailedBuild != "":
			o.built = false
		case strings.HasPrefix(e.Output, "panic: test timed out after "):
			o.timedOut = true
		case e.Action == "run":
			o.ran = true
		case e.Action == "fail" && e.Test != "" && o.failed == "":
			o.failed = e.Test
		}
	}
	o.output = output.String()
	return o
}
