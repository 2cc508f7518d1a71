package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/testdata/queries"
)

type conformCmd struct {
	storeFlags
	URL  string   `env:"RUNLENS_URL" nopassword:"the API takes keys" default:"http://127.0.0.1:8080" help:"@conform_url"`
	Only []string `placeholder:"SCRIPT" help:"Run these scripts only, such as ranges."`
	JSON bool     `help:"Print the report as JSON."`
}

func (conformCmd) Help() string {
	return `Asks a running server the questions of all cases whose answers were worked out by hand from the specification,
and compares rows, columns, warnings, pages and refusals. If an answer differs the exit code is 1.

The records of the cases go into the store as ingest copies them, under organizations of names that begin with
"conform-" and belong to no one else, with keys that expire in an hour. At the end, also after an interrupt, the
organizations are purged. Some answers are right only when the server has refreshed its rollup: the command asks for
them again, for at most a minute.

Example:
  runlens conform --url http://127.0.0.1:8080
  runlens conform --only ranges --json | jq '.failed[]'`
}

// conformPatience is what the purge of the organizations may take after an interrupt.
const conformPatience = 2 * time.Minute

func (c conformCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if _, err := client.New(client.Config{URL: c.URL, Key: "none"}); err != nil {
		return usageError{fmt.Errorf("--url: %w", err)}
	}
	scripts, err := conform.Scripts(queries.Files)
	if err != nil {
		return err
	}
	if scripts, err = only(scripts, c.Only); err != nil {
		return usageError{err}
	}
	return interruptible(ctx, conformPatience, func(ctx context.Context) error {
		return c.prove(ctx, scripts, logger, io)
	})
}

// only are the scripts that are named; all where none is.
func only(scripts []conform.Named, names []string) (chosen []conform.Named, err error) {
	if len(names) == 0 {
		return scripts, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(scripts, func(s conform.Named) bool { return s.Name == name })
		if i < 0 {
			var all []string
			for _, script := range scripts {
				all = append(all, script.Name)
			}
			return nil, fmt.Errorf("--only %s is none of %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, scripts[i])
	}
	return chosen, nil
}

func (c conformCmd) prove(ctx context.Context, scripts []conform.Named, logger *slog.Logger, io streams) error {
	p, stores, leave, err := c.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	trial := newTrial(stores, p, c.URL, logger, io)
	report := conformReport{URL: c.URL, Failed: []failedCase{}}
	began := time.Now()
	err = audit.Do(ctx, stores[0].Conn(), audit.Action{Name: "conform"}, func(ctx context.Context) error {
		var failed error
		for i, script := range scripts {
			logger.Info("asking", "script", script.Name, "number", i+1, "of", len(scripts))
			if failed = trial.run(ctx, script, &report); failed != nil {
				break
			}
		}
		return errors.Join(failed, trial.clean(ctx))
	})
	if err != nil {
		return err
	}
	report.Seconds = time.Since(began).Seconds()
	if err := report.print(io.out, c.JSON); err != nil {
		return err
	}
	if len(report.Failed) > 0 {
		return exitError{exitFailed}
	}
	return nil
}

// A conformReport is what --json prints.
type conformReport struct {
	URL     string       `json:"url"`
	Cases   int          `json:"cases"`
	Failed  []failedCase `json:"failed"`
	Seconds float64      `json:"seconds"`
}

type failedCase struct {
	Script      string   `json:"script"`
	Line        int      `json:"line"`
	Name        string   `json:"name"`
	Rules       []string `json:"rules"`
	Differences []string `json:"differences"`
}

func (r conformReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(out, "%s.test line %d, %s:\n", f.Script, f.Line, f.Name)
		for _, difference := range f.Differences {
			for line := range strings.SplitSeq(difference, "\n") {
				fmt.Fprintln(out, "  "+output.Printable(line))
			}
		}
	}
	verdict := "every answer is right"
	if len(r.Failed) > 0 {
		verdict = fmt.Sprintf("%d answers DIFFER", len(r.Failed))
	}
	_, err := fmt.Fprintf(out, "%s: %d cases, %.1f s\n", verdict, r.Cases, r.Seconds)
	return err
}
