package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
)

// ingestMemoryBytes is where the Go runtime begins to collect garbage eagerly. Two batches and their
// encoding need far less.
const ingestMemoryBytes = 128 << 20

type ingestCmd struct {
	storeFlags
	Files   []string `arg:"" name:"file" help:"NDJSON files; - is standard input."`
	Rejects string   `placeholder:"FILE" help:"Write rejected records to FILE, one JSON object a line."`
	OnError string   `enum:"continue,stop" default:"continue" help:"At a rejected record: continue, or stop at the first one."`
	DryRun  bool     `help:"Read and check everything, write nothing. Needs no store."`
}

func (ingestCmd) Help() string {
	return `Copies agent, run and attribution records, told apart by their field "record". Running it again with the same records changes nothing.
A record that breaks a rule is rejected alone; the rest is stored, and the exit code is 3.
The first interrupt ends after the batch in flight, the second at once.

Example:
  runlens ingest --rejects rejects.ndjson agents.ndjson runs.ndjson
  zcat export.ndjson.gz | runlens ingest -`
}

func (c ingestCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	debug.SetMemoryLimit(ingestMemoryBytes)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sources, total, err := c.sources(io)
	if err != nil {
		return usageError{err}
	}
	rejects, err := openRejects(c.Rejects, io.err)
	if err != nil {
		return usageError{err}
	}
	options := ingest.Options{
		Sources: sources, OnReject: rejects.add, StopOnError: c.OnError == "stop",
		Stop: stopOnSignals(cancel), Logger: logger,
	}
	if !c.DryRun {
		store, err := openMigrated(ctx, c.storeFlags, logger)
		if err != nil {
			return err
		}
		defer store.Close()
		options.Conn = store.Conn()
	}
	progress := newProgress(io.err, total, logger)
	options.Progress = progress.show
	began := time.Now()
	summary, err := ingest.Run(ctx, options)
	progress.end()
	err = errors.Join(err, rejects.close())
	printSummary(io.out, summary, c.DryRun, time.Since(began))
	switch {
	case err != nil:
		return err
	case summary.Rejected > 0:
		return exitError{exitRejected}
	default:
		return nil
	}
}

// sources opens nothing yet but makes sure that every file is there, so that a typing error does
// not end a run half way. The total is the bytes of all files, 0 when it is not known.
func (c ingestCmd) sources(streams streams) (sources []ingest.Source, total int64, err error) {
	known := true
	for _, name := range c.Files {
		if name == "-" {
			known = false
			sources = append(sources, ingest.Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(streams.in), nil }})
			continue
		}
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, 0, fmt.Errorf("there is no file %s", name)
		case err != nil:
			return nil, 0, err
		case info.IsDir():
			return nil, 0, fmt.Errorf("%s is a folder; name the files in it", name)
		}
		known = known && info.Mode().IsRegular()
		total += info.Size()
		sources = append(sources, ingest.Source{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }})
	}
	if !known {
		total = 0
	}
	return sources, total, nil
}

// stopOnSignals returns a channel that the first interrupt closes; the second one cancels.
func stopOnSignals(cancel func()) <-chan struct{} {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	stop := make(chan struct{})
	go func() {
		<-signals
		close(stop)
		<-signals
		cancel()
	}()
	return stop
}

func printSummary(out io.Writer, s ingest.Summary, dryRun bool, took time.Duration) {
	verb := "stored"
	if dryRun {
		verb = "valid"
	}
	seconds := took.Seconds()
	fmt.Fprintf(out, "read %d, %s: agents %d, runs %d, attributions %d, rejected %d, %.1f s, %.0f records/s\n",
		s.Read, verb, s.Stored[normalize.KindAgent], s.Stored[normalize.KindRun], s.Stored[normalize.KindAttribution],
		s.Rejected, seconds, float64(s.Read)/max(seconds, 0.001))
}

// shownRejects is how many rejects are told on standard error when no file takes them.
const shownRejects = 10

// rejects writes rejected records to a file, or tells the first of them.
type rejects struct {
	file   *os.File
	out    *bufio.Writer
	stderr io.Writer
	count  int
}

func openRejects(path string, stderr io.Writer) (*rejects, error) {
	if path == "" {
		return &rejects{stderr: stderr}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &rejects{file: file, out: bufio.NewWriter(file)}, nil
}

func (r *rejects) add(reject ingest.Reject) error {
	r.count++
	if r.file == nil {
		if r.count <= shownRejects {
			place := reject.Error
			if reject.Field != "" {
				place = reject.Field + " " + place
			}
			fmt.Fprintf(r.stderr, "rejected: %s line %d: %s\n", reject.Source, reject.Line, place)
		}
		return nil
	}
	line, err := reject.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = r.out.Write(line)
	return err
}

func (r *rejects) close() error {
	if r.file != nil {
		return errors.Join(r.out.Flush(), r.file.Close())
	}
	if r.count > shownRejects {
		fmt.Fprintf(r.stderr, "rejected: %d more; --rejects FILE keeps all of them\n", r.count-shownRejects)
	}
	return nil
}
