// Command samplesource is an operational database at work: it starts the PostgreSQL of deploy/postgres, prints its
// address, and writes sample rows every second until a signal. deploy/try.sh has a worker follow it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

type command struct {
	Writer string `arg:"" type:"existingfile" placeholder:"FILE" help:"The statements, such as deploy/compose/writer.sql."`
}

func (command) Help() string {
	return "Example:\n  go run ./cmd/samplesource deploy/compose/writer.sql"
}

func main() {
	var c command
	kong.Parse(&c, kong.Name("samplesource"), kong.Description("Runs a PostgreSQL with rows that come and change."))
	harness.Main("samplesource", os.Stderr, func(ctx context.Context) error {
		if err := c.run(ctx, os.Stdout); ctx.Err() == nil {
			return err
		}
		return nil // a signal is how it is ended
	})
}

func (c command) run(ctx context.Context, stdout io.Writer) (err error) {
	text, err := os.ReadFile(c.Writer)
	if err != nil {
		return err
	}
	// What psql repeats in the composition.
	statements, repeats := strings.CutSuffix(string(text), "\n\\watch 1\n")
	if !repeats {
		return fmt.Errorf("%s does not end in \\watch 1", c.Writer)
	}
	server, err := postgrestest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, postgres.Layout); err != nil {
		return err
	}
	fmt.Fprintln(stdout, server.URL())
	for again := true; again; again = harness.Pause(ctx, time.Second) {
		if _, err := conn.Exec(ctx, statements); err != nil {
			return err
		}
	}
	return nil
}
