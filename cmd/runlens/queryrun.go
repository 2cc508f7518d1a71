package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/threshold"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/snapshot"
)

// An asking is a question that is ready to be asked, once or again and again.
type asking struct {
	streams
	client     *client.Client
	question   report.Question
	body       *client.Query // instead of the question
	thresholds []threshold.Threshold
	minCount   int
	changes    *alertState // of thresholds; nil for all that are crossed
	format     string
	options    output.Options
	file       string // empty for standard output
	quiet      bool

	counted bool // something was counted in the last answer
}

func (a *asking) run() *report.Run {
	return &report.Run{Client: a.client, Question: a.question, Body: a.body}
}

// once asks and writes the whole answer. A crossed threshold is an exitError.
func (a *asking) once(ctx context.Context) error {
	began := time.Now()
	run := a.run()
	if err := run.Check(began); err != nil {
		return usageError{err}
	}
	shown := newQueryProgress(a)
	run.OnPage = shown.page
	a.counted = false
	crossed, err := a.write(ctx, run)
	shown.end()
	if err != nil {
		return a.explained(ctx, err, run)
	}
	if !a.quiet {
		summarize(a.err, &run.Facts, time.Since(began))
		if !a.counted {
			for _, hint := range explain.Missing(ctx, a.client, run.Query()) {
				say(a.err, "note: %s", hint)
			}
		}
	}
	crossed.whole = !run.Facts.More && !run.Facts.Cut
	return a.alert(crossed)
}

// counts reports whether a row says that there was something: a count that is not 0, or a rate where none is asked for.
func counts(columns []report.Column, row report.Row) bool {
	if !slices.ContainsFunc(columns, func(c report.Column) bool { return c.Kind == report.Count }) {
		return slices.ContainsFunc(row, client.Value.IsNumber)
	}
	return slices.ContainsFunc(row, func(v client.Value) bool {
		n, ok := v.Int64()
		return ok && n != 0
	})
}

// explained is one line about a failure and what to do.
func (a *asking) explained(ctx context.Context, err error, run *report.Run) error {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; the output is not whole")
	}
	line, wrong := explain.Refusal(ctx, err, run.Query(), a.client.Catalog)
	if run.Facts.Rows > 0 && a.file == "" {
		line += fmt.Sprintf("; the output is not whole, it ends after %d rows", run.Facts.Rows)
	}
	if wrong {
		return usageError{errors.New(line)}
	}
	return errors.New(line)
}

// write streams the rows into the output. A file is in its place only if all of them came.
func (a *asking) write(ctx context.Context, run *report.Run) (*crossings, error) {
	table, err := run.Table(ctx)
	if err != nil {
		return nil, err
	}
	crossed := &crossings{columns: table.Columns, counting: threshold.Counting(table.Columns), least: int64(a.minCount),
		all: a.changes != nil, passed: map[string]bool{}}
	if crossed.least > 0 && crossed.counting < 0 {
		return nil, usageError{errors.New("--min-count needs a metric that counts beside the others, such as run_count")}
	}
	for _, t := range a.thresholds {
		found, err := t.On(table.Columns)
		if err != nil {
			return nil, usageError{err}
		}
		crossed.thresholds = append(crossed.thresholds, found)
	}
	if a.file == "" {
		return crossed, a.rows(run, table, crossed, a.out)
	}
	file, err := output.Create(a.file)
	if err != nil {
		return nil, usageError{fmt.Errorf("-o: %w", err)}
	}
	return crossed, file.Fill(func(w io.Writer) error { return a.rows(run, table, crossed, w) })
}

func (a *asking) rows(run *report.Run, table report.Table, crossed *crossings, out io.Writer) error {
	w, err := output.New(a.format, out, a.options)
	if err != nil {
		return err
	}
	if err := w.Head(table.Columns); err != nil {
		return err
	}
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		if err := w.Row(row); err != nil {
			return err
		}
		run.Facts.Rows++
		a.counted = a.counted || counts(table.Columns, row)
		crossed.add(row)
	}
	if err := w.End(run.Facts); err != nil {
		return err
	}
	if cut, ok := w.(interface{ Cut() bool }); ok && cut.Cut() && !a.quiet {
		say(a.err, "note: the table is wider than the terminal; --vertical and --wide show all of it")
	}
	return nil
}

// watch asks until it is interrupted. What may pass, such as a server that restarts, ends nothing.
func (a *asking) watch(ctx context.Context, pause time.Duration) error {
	clear := a.file == "" && output.IsTerminal(a.out)
	for {
		if clear {
			fmt.Fprint(output.Controls(a.out), "\x1b[H\x1b[2J")
		}
		err := a.once(ctx)
		switch code := codeOf(err); {
		case ctx.Err() != nil:
			return nil
		case code == exitUsage:
			return err
		case code == exitFailed:
			say(a.err, "runlens: %v", err)
		}
		if snapshot.Pause(ctx, pause) != nil {
			return nil
		}
	}
}
