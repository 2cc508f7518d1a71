package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/threshold"
)

type queryCmd struct {
	serverFlags
	givenQuestion
	Output      string        `enum:",${formats}" default:"" placeholder:"FORMAT" help:"@output"`
	Save        string        `placeholder:"NAME" help:"@save"`
	File        string        `short:"o" placeholder:"FILE" help:"@file"`
	Wide        bool          `help:"Do not cut a table to the width of the terminal."`
	Vertical    bool          `help:"A table with a line for every value."`
	Spreadsheet bool          `help:"@spreadsheet"`
	OnChange    string        `placeholder:"FILE" help:"@on_change"`
	Watch       time.Duration `placeholder:"10s" help:"Ask again and again with this pause, at least 1s, until Ctrl-C."`
	Quiet       bool          `short:"q" help:"Only errors and crossed thresholds on standard error."`
}

func (queryCmd) Help() string {
	return `Asks a running server and writes the answer to standard output or a file. A row count, asOf and warnings go to
standard error. More rows than a page has come page by page; when the key's rate is used up, the command waits as
long as the server says.

Example:
  runlens login                    # keeps the address and the key; or set RUNLENS_API_KEY
  runlens query --metrics run_count,failed_run_count --dimensions day --output plot
  runlens query --metrics run_count --dimensions user_identifier --all -o users.xlsx
  runlens query --metrics run_count,unique_initiator_count --last 12w --grain week --compare previous --save weekly
  runlens query @weekly --output markdown
  runlens query --metrics run_success_rate --today --fail-if 'run_success_rate < 0.9' --quiet   # in cron: exit code 4`
}

func (c queryCmd) Run(ctx context.Context, command *kong.Context, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error { return c.ask(ctx, command, io) })
}

func (c queryCmd) ask(ctx context.Context, command *kong.Context, io streams) error {
	queryMemory.bound()
	if err := c.refuseSaving(command, io.in); err != nil {
		return err
	}
	given := explicitFlags(command)
	ask, err := c.prepare(given, io)
	if err != nil {
		return usageError{err}
	}
	if ask.client, err = c.client(given, io, c.Quiet); err != nil {
		return err
	}
	if c.Watch != 0 {
		return ask.watch(ctx, c.Watch)
	}
	err = ask.once(ctx)
	answered := err == nil || codeOf(err) == exitThreshold
	if c.Save != "" && answered { // what is refused is not worth keeping
		err = errors.Join(c.save(io), err)
	}
	return err
}

// explicitFlags are the names of those on the command line.
func explicitFlags(command *kong.Context) map[string]bool {
	given := make(map[string]bool)
	for _, flag := range givenFlags(command.Path) {
		given[flag.Name] = true
	}
	return given
}

// prepare checks everything that can be checked without the server. Its error is wrong usage.
func (c *queryCmd) prepare(given map[string]bool, io streams) (*asking, error) {
	if c.File == "-" {
		c.File = ""
	}
	ask := &asking{streams: io, file: c.File, quiet: c.Quiet}
	switch {
	case c.Watch != 0 && c.Watch < time.Second:
		return nil, errors.New("--watch must be at least 1s")
	case c.Watch != 0 && c.Save != "":
		return nil, errors.New("--watch and --save exclude each other")
	}
	body, format, err := c.read(given, io.in)
	if err != nil {
		return nil, err
	}
	if !given["output"] {
		c.Output = format
	}
	ask.body = body
	ask.question = c.Question
	if err := c.alerts(ask); err != nil {
		return nil, err
	}
	if err := ask.run().Check(time.Now()); err != nil {
		return nil, err
	}
	if ask.format, err = c.format(); err != nil {
		return nil, err
	}
	if given["spreadsheet"] && c.Spreadsheet && ask.format != "csv" {
		return nil, fmt.Errorf("--spreadsheet is for CSV, not for %s: add --output csv", ask.format)
	}
	terminal := c.File == "" && output.IsTerminal(io.out)
	if terminal && output.Binary(ask.format) {
		return nil, fmt.Errorf("--output %s is for files: add -o FILE", ask.format)
	}
	ask.options = output.Options{Vertical: c.Vertical, Spreadsheets: c.Spreadsheet}
	if terminal {
		ask.options.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if !c.Wide {
			ask.options.Width = output.Columns(io.out)
		}
	}
	return ask, nil
}

// alerts reads the conditions, and what they held for the last time.
func (c *queryCmd) alerts(ask *asking) (err error) {
	if ask.thresholds, err = threshold.Parse(c.FailIf); err != nil {
		return err
	}
	if ask.minCount = c.MinCount; ask.thresholds == nil && (c.OnChange != "" || c.MinCount != 0) {
		return errors.New("--on-change and --min-count are for --fail-if")
	}
	if c.OnChange != "" {
		ask.changes, err = readAlerts(c.OnChange)
	}
	return err
}

// format is the one of --output, else that of the file's ending.
func (c *queryCmd) format() (string, error) {
	switch {
	case c.Output != "" && !slices.Contains(output.Formats, c.Output): // of a saved question
		return "", fmt.Errorf("--output %s must be one of %s", c.Output, strings.Join(output.Formats, " "))
	case c.Output != "" || c.File == "":
		return cmp.Or(c.Output, "table"), nil
	}
	ending := strings.TrimPrefix(filepath.Ext(c.File), ".")
	for short, format := range map[string]string{"md": "markdown", "txt": "table", "jsonl": "ndjson"} {
		if ending == short {
			return format, nil
		}
	}
	if !slices.Contains(output.Formats, ending) {
		return "", fmt.Errorf("-o %s does not end in a format; name one with --output: %s",
			c.File, strings.Join(output.Formats, ", "))
	}
	return ending, nil
}
