// Command bench measures runlens against references on the same rows in one run: the SQL that an expert
// would write first, our own SQL without the server, PostgreSQL, and ClickHouse's own loading of
// files. It prints a table and writes the medians as JSON.
//
// It reports what it saw: a goal that is missed is marked and fails nothing. What does fail is a wrong answer: every
// measured query is also compared, row by row, with a reference that knows nothing of our compiler.
package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

// A command is the command line.
type command struct {
	Scale     float64       `default:"0.1" help:"Size of the data: 1 is 10,000,000 runs (${default})."`
	Only      harness.Only  `placeholder:"NAME,…" help:"Only these scenarios, of those below."`
	JSON      string        `default:"data/bench.json" placeholder:"FILE" help:"File for the results (${default})."`
	Dir       string        `default:"data/bench" placeholder:"DIR" help:"Folder for the data of a run (${default})."`
	Until     time.Time     `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"End of the data (this hour)."`
	Repeat    int           `default:"5" help:"Fewest measurements of everything (${default})."`
	Budget    time.Duration `default:"1s" help:"Time for more measurements of a query (${default})."`
	Window    time.Duration `default:"3s" help:"Length of each measurement of a rate (${default})."`
	Rate      int           `default:"1000" help:"Rows that arrive each second in the scenario arrivals (${default})."`
	Rounds    int           `default:"3" help:"How often each file format is ingested (${default})."`
	Share     float64       `name:"maintenance-share" default:"0.4" help:"The server's --maintenance-share (${default})."`
	Runlens   string        `default:"bin/runlens" placeholder:"FILE" help:"The binary to measure (${default})."`
	Before    string        `placeholder:"FILE" help:"Another binary, of before a change, for the scenario before."`
	EngineLib string        `env:"RUNLENS_ENGINE_LIB" placeholder:"FILE" help:"The embedded engine's library."`
}

func (command) Help() string {
	return `The same --scale and --until give the same rows. Compare ratios and milliseconds only within one run.
Run it on a quiet machine. Scenarios: others, query, memory, sizes, threshold, options, small,
clients, before, cold, repeated, postgres, arrivals, growth, cells, ingest.

Example:
  make bench BENCH_SCALE=1
  go run ./cmd/bench --scale 0.002 --only query,small --json /tmp/bench.json
  make bench BENCH_FLAGS="--only before --before /tmp/runlens-of-main"`
}

func main() {
	runInfileChild() // does not return in that child
	var c command
	kong.Parse(&c, kong.Name("bench"), kong.Description("Measures runlens against references on the same rows."))
	harness.Main("bench", os.Stderr, func(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) })
}

// errDiffer is returned when an answer was wrong; the report says which.
var errDiffer = errors.New("answers differ from the reference")

// run measures the configured scenarios and reports them, also those before a failure.
func (c command) run(ctx context.Context, out, log *os.File) error {
	if err := c.complete(); err != nil {
		return err
	}
	b := &bench{command: c, log: log, report: newReport(c), keys: map[schema.OrganizationID]string{}}
	err := b.measure(ctx)
	b.close()
	b.report.Finished = time.Now().UTC()
	b.report.print(out)
	if writeErr := b.report.write(c.JSON); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if err == nil && len(b.report.Mismatches) > 0 {
		err = errDiffer
	}
	return err
}

// complete fills what has a default that is not a constant and refuses what cannot work.
func (c *command) complete() error {
	if c.Until.IsZero() {
		c.Until = time.Now()
	}
	c.Until = c.Until.UTC().Truncate(time.Hour)
	if c.EngineLib == "" {
		c.EngineLib = clickhouse.LibraryBelow(".")
	}
	if c.Scale <= 0 || c.Repeat < 1 || c.Rate < 20 || c.Rounds < 1 || c.Window <= 0 {
		return errors.New("--scale, --repeat, --rounds and --window must be greater than 0, --rate at least 20")
	}
	if c.Before == "" && slices.Contains(c.Only, "before") {
		return errors.New("the scenario before needs another binary: give one as --before FILE")
	}
	known := make([]string, len(scenarios))
	for i, s := range scenarios {
		known[i] = s.name
	}
	return c.Only.Check("scenario", known)
}
