package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
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
	built  bool
	ran    bool   // at least one test
	failed string // the first test that failed, or that the tests did not end in time; empty for neither
	output string
}

// kill returns which of its tests kills a mutant; an error if none does.
func (t *tester) kill(ctx context.Context, m mutant) (by string, err error) {
	overlay, err := t.overlay(m)
	if err != nil {
		return "", err
	}
	o, err := t.test(ctx, m, "-overlay", overlay)
	switch {
	case err != nil:
		return "", err
	case !o.built:
		return "", errors.New("it does not compile:\n" + o.output)
	case !o.ran:
		return "", fmt.Errorf("%s has no test %s", m.pkg, m.tests)
	case o.failed == "":
		return "", errors.New("it survived")
	}
	if clean, err := t.clean(ctx, m); err != nil || clean.failed != "" || !clean.built {
		return "", errors.Join(err, errors.New("the tests fail without it, too:\n"+clean.output))
	}
	return o.failed, nil
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
func (t *tester) overlay(m mutant) (name string, err error) {
	content, err := m.apply(t.root)
	if err != nil {
		return "", fmt.Errorf("not applicable: %w", err)
	}
	name = filepath.Join(t.dir, strconv.Itoa(m.number))
	replace := map[string]string{filepath.Join(t.root, filepath.FromSlash(m.file)): name + ".go"}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(name+".go", []byte(content), 0o600)
	}
	if err == nil {
		err = os.WriteFile(name+".json", text, 0o600)
	}
	return name + ".json", err
}

// test runs the tests of a mutant.
func (t *tester) test(ctx context.Context, m mutant, flags ...string) (o outcome, err error) {
	args := append([]string{"-json", "-count=1", "-failfast", "-vet=off", "-timeout", t.timeout.String(),
		"-run", m.tests}, flags...)
	cmd := harness.GoTest(ctx, append(args, m.pkg)...)
	cmd.Dir = t.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	o = read(stdout)
	if o.output += stderr.String(); err != nil && o.built && o.failed == "" {
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
			o.failed = strings.TrimSpace(e.Output)
		case e.Action == "run":
			o.ran = true
		case e.Action == "fail" && e.Test != "" && o.failed == "":
			o.failed = e.Test
		}
	}
	o.output = output.String()
	return o
}
