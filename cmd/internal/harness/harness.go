// Package harness is what programs have in common that measure or attack the built binary for a long time: how they
// begin and end, which of their parts run, where their data is, and what they report.
package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Main runs a program until it ends or is interrupted: a first signal ends the context, a second one the process. An
// error goes to the log under the program's name, and ends the process with 1.
func Main(name string, log io.Writer, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintf(log, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Only are the parts that were asked for; none for all.
type Only []string

// Check refuses parts that are not among the known ones, which the flag --only calls what.
func (o Only) Check(what string, known []string) error {
	for _, name := range o {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--only: there is no %s %q; there are %s", what, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Has reports whether a part runs.
func (o Only) Has(name string) bool { return len(o) == 0 || slices.Contains(o, name) }

// A Folder is that of one run.
type Folder struct {
	Dir    string // absolute
	parent string
}

// NewFolder makes a folder for a run in parent, which is made too if it is not there.
func NewFolder(parent string) (f Folder, err error) {
	f.parent = parent
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return f, err
	}
	if f.Dir, err = os.MkdirTemp(parent, "run-"); err == nil {
		f.Dir, err = filepath.Abs(f.Dir)
	}
	return f, err
}

// Remove removes all that is in the folder, and its parent if no other run is in it. A Folder that was never made is
// left alone.
func (f Folder) Remove() {
	if f.Dir != "" {
		os.RemoveAll(f.Dir)
		os.Remove(f.parent)
	}
}

// Say reports progress, with the time.
func Say(log io.Writer, format string, args ...any) {
	fmt.Fprintf(log, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// Poll asks at an interval until something is done, ever more rarely: what it takes to ask for long would delay what it
// waits for. It reports false when patience has passed before, or ctx has ended.
func Poll(ctx context.Context, patience, interval time.Duration, done func() bool) bool {
	for began := time.Now(); !done(); {
		if waited := time.Since(began); waited > patience || !Pause(ctx, max(interval, waited/10)) {
			return false
		}
	}
	return true
}

// Pause waits, and reports whether ctx is still on.
func Pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}
