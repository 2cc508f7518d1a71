package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/cmd/internal/logs"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/ingest/transfer"
	"github.com/runlens/runlens/olap/cells"
	server "github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A startStep is one part of a command's start. Each has an end, whatever the other side does.
type startStep struct {
	name   string        // as in "cannot NAME"
	limit  time.Duration // the longest it may take
	advice string        // what to do if it fails or does not end
}

var (
	openAddresses = startStep{"open the addresses", 10 * time.Second, "check --listen and --admin-listen"}
	openingServer = startStep{"open the store", time.Minute,
		"check the address with its user and password, and that ClickHouse answers there"}
	openingEngine = startStep{"open the store", time.Minute,
		"check that the data directory can be written to; engine.log in its folder engine says more"}
	migrating = startStep{"apply the migrations", 5 * time.Minute,
		"see ClickHouse's log, then run 'runlens migrate up', which may take an hour and goes on where this one ended"}
	admitting = startStep{"use the store", 30 * time.Second, "check that ClickHouse answers"}
	// What 'runlens migrate' does on purpose may take longer than a start.
	migratingAlone = startStep{"change the schema", time.Hour,
		"see ClickHouse's log, then run it again: it goes on where this one ended"}
	readingSecret = startStep{"read the cursor secret", 30 * time.Second,
		"check that ClickHouse answers and may be written to"}
	openingRejects = startStep{"open the file of --rejects", time.Hour,
		"check that it can be written to; a pipe needs a reader"}
	readingMapping = startStep{"read the file of --mapping", time.Hour, "check that it can be read; a pipe needs a writer"}
	readingKeys    = startStep{"read the API keys", 30 * time.Second, "check that ClickHouse answers"}
)

// abandonStepAfter is how long a step may take to end when it has to.
const abandonStepAfter = time.Second

// within does one step of a start. When its limit has passed or ctx is done, do has a second to come to an orderly
// end, and is abandoned after that: nothing that does not return can delay the process. discard gets a value
// that comes later; nil for none.
func within[T any](
	ctx context.Context, step startStep, discard func(T), do func(context.Context) (T, error),
) (T, error) {
	limited, cancel := context.WithTimeout(ctx, step.limit)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do(limited)
		done <- result{value, err}
	}()
	r, ended := awaited(limited, done, abandonStepAfter)
	if !ended {
		go func() {
			if late := <-done; late.err == nil && discard != nil {
				discard(late.value)
			}
		}()
		r.err = limited.Err()
	}
	if r.err == nil {
		return r.value, nil
	}
	return r.value, step.failure(ctx, limited, r.err)
}

// awaited waits for a value, and when ctx is done for no longer than a grace. It reports whether the value came.
func awaited[T any](ctx context.Context, from <-chan T, grace time.Duration) (value T, came bool) {
	select {
	case value = <-from:
		return value, true
	case <-ctx.Done():
	}
	select {
	case value = <-from:
		return value, true
	case <-time.After(grace):
		return value, false
	}
}

// advising are errors that say themselves what to do: the advice of a step or of a command would be another.
var advising = []error{schema.ErrNewerStore, schema.ErrOlderStore, schema.ErrNewerMigrations, schema.ErrOtherTables,
	cells.ErrMisplaced, server.ErrNoLibrary, server.ErrOtherNode, server.ErrCached, server.ErrStripped, transfer.ErrUsed,
	transfer.ErrMoved, transfer.ErrUnfinished, transfer.ErrUnrestored, transfer.ErrBusy, transfer.ErrPurging}

func advises(err error) bool {
	return slices.ContainsFunc(advising, func(known error) bool { return errors.Is(err, known) })
}

// failure is the one line that says which step failed and what to do. It wraps the cause.
func (s startStep) failure(ctx, limited context.Context, err error) error {
	var usage usageError
	switch {
	case ctx.Err() != nil:
		return stepFailure{"stopped before it could " + s.name, ctx.Err()}
	case errors.As(err, &usage):
		return err
	case limited.Err() != nil:
		text := fmt.Sprintf("cannot %s: it did not end within %v; %s", s.name, s.limit, s.advice)
		return stepFailure{text, context.DeadlineExceeded}
	}
	text := "cannot " + s.name + ": " + oneLine(err)
	if !diskFull(err) && !advises(err) {
		text += "; " + s.advice
	}
	return stepFailure{text, err}
}

// A stepFailure is a failure in words of its own.
type stepFailure struct {
	text  string
	cause error
}

func (f stepFailure) Error() string { return f.text }
func (f stepFailure) Unwrap() error { return f.cause }

// oneLine describes a failure in one line, without what ClickHouse said of it: that can contain statements, and is in
// its log. Nor has it the queries of addresses.
func oneLine(err error) string {
	if _, ok := errors.AsType[*clickhouse.Exception](err); ok {
		if diskFull(err) {
			return "the disk of ClickHouse is full; free some space and start again"
		}
		err = failure.Of("the store", err)
	}
	return finding.OneLine(logs.Text(err))
}

// withoutStatements is what a failure says, with what ClickHouse said of it as oneLine describes it.
func withoutStatements(err error) string {
	text := logs.Text(err)
	if exception, ok := errors.AsType[*clickhouse.Exception](err); ok {
		if before, _, found := strings.Cut(text, exception.Error()); found {
			text = before + oneLine(exception)
		} else if strings.Contains(err.Error(), exception.Error()) { // of which logs.Text has left out lines
			text = oneLine(err)
		}
	}
	return finding.OneLine(text)
}

// interruptPatience is how long a command may take to end after a signal, beyond what it needs to finish what is under
// way.
const interruptPatience = 3 * time.Second

// interruptible runs a command with a context that SIGINT and SIGTERM end. One that then does not end within drain and
// interruptPatience is abandoned: the opening of a pipe, a read from a terminal, a write to a reader that has stopped
// and everything on a file system that is gone know no context, and would make the process deaf. The second signal ends
// it at once.
func interruptible(ctx context.Context, drain time.Duration, do func(context.Context) error) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	err, came := awaited(ctx, ended, drain+interruptPatience)
	if !came {
		return errors.New("interrupted while it waited for a file or a terminal; the output is not whole")
	}
	return err
}

// diskFull reports whether something failed because the disk of the store is full.
func diskFull(err error) bool {
	var exception *clickhouse.Exception
	return errors.Is(err, syscall.ENOSPC) || errors.As(err, &exception) &&
		(exception.Code == failure.CodeNoSpace || strings.Contains(exception.Message, "No space left on device"))
}

// endSignals are the signals that end a command in order. SIGHUP, which comes when a terminal or a session over SSH is
// closed, is one of them unless whoever started the command, such as nohup, has it ignored.
func endSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// untilSignal returns a context that one of endSignals ends. The second signal ends the process at once.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// A lasting command may run for months. It outlives whoever reads its log.
type lasting interface{ lasts() bool }

func (serveCmd) lasts() bool     { return true }
func (workerRunCmd) lasts() bool { return true }
func (engineRunCmd) lasts() bool { return true }
func (consoleCmd) lasts() bool   { return true }
func (c mcpCmd) lasts() bool     { return c.Listen != "" } // over its standard streams it ends with the assistant

// outlivesReaders are the streams of a command. One that lasts writes all of its log as lines are written: without
// waiting for anybody, and without the signal by which the Go runtime ends a process whose log nobody reads any more.
func outlivesReaders(command any, s streams, lines io.Writer) streams {
	if one, ok := command.(lasting); ok && one.lasts() {
		signal.Ignore(syscall.SIGPIPE)
		if !output.IsTerminal(s.err) {
			s.err = lines
		}
	}
	return s
}
