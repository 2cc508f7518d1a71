// Command sampledata writes sample records that look like life, as NDJSON for runlens ingest: four
// organizations over 13 months, with weekly and daily rhythm, renamed and deleted agents, people
// with several names, automated initiators and runs in every status. Names and addresses are
// invented; domains and phone numbers are reserved for examples.
//
// The same seed and end give the same bytes, and a later end only adds records: every day of every
// organization is drawn from random numbers of its own.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"
)

type command struct {
	Seed  uint64    `default:"1" help:"Another seed gives other data (${default})."`
	Until time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Newest time. Default: this hour."`
	Out   string    `default:"-" placeholder:"FILE" help:"Where to write; - is standard output."`
}

func (command) Help() string {
	return "Example:\n  go run ./cmd/sampledata --until 2026-11-21T09:00:00Z | bin/runlens ingest -"
}

func main() {
	var c command
	kong.Parse(&c, kong.Name("sampledata"), kong.Description("Writes sample records as NDJSON."))
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sampledata:", err)
		os.Exit(1)
	}
}

func (c command) run(stdout io.Writer) error {
	if c.Until.IsZero() {
		c.Until = time.Now().UTC().Truncate(time.Hour)
	}
	file := stdout
	if c.Out != "-" {
		f, err := os.Create(c.Out)
		if err != nil {
			return err
		}
		defer f.Close()
		file = f
	}
	out := bufio.NewWriterSize(file, 1<<20)
	if err := generate(out, c.Seed, c.Until.UTC()); err != nil {
		return err
	}
	return out.Flush()
}
