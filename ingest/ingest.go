// Package ingest copies records into the store: a source's lines are normalized, what breaks a
// rule is rejected alone with its reason, and the rest is written in batches.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
)

// A batch ends at whichever bound it reaches first. Two batches are in memory at a time: one that
// is being filled and one that is being written.
const (
	batchRows  = 50_000
	batchBytes = 16 << 20 // of the records as they were written
)

// A Source is a named stream of NDJSON records.
type Source struct {
	Name string // as it stands in rejects: a file's path, or - for standard input
	Open func() (io.ReadCloser, error)
}

// Options say what Run does.
type Options struct {
	Sources     []Source
	Conn        driver.Conn // nil for a dry run: everything is read and checked, nothing is written
	OnReject    func(Reject) error
	StopOnError bool            // end at the first reject; what came before it is stored
	Stop        <-chan struct{} // when closed: end after the batch in flight
	Progress    func(Progress)  // after every batch; nil for none
	Logger      *slog.Logger
}

// A Progress says how far a run has come.
type Progress struct {
	Source  string
	Summary Summary
	Bytes   int64 // read so far, of all sources
}

// A Summary counts records.
type Summary struct {
	Read     int64                    // lines that are not blank
	Stored   map[normalize.Kind]int64 // acknowledged by ClickHouse; in a dry run, that would be written
	Rejected int64
}

// ErrRejected ends a run whose options say to stop at the first reject.
var ErrRejected = errors.New("stopped at the first rejected record")

// ErrStopped ends a run that was asked to stop before it had read everything.
var ErrStopped = errors.New("stopped before the end; what was read is stored, and running it again is safe")

// A batch is a batch of records and what was read for it.
type batch struct {
	write.Batch
	source string
	read   int64
	bytes  int64
	bad    int64
	err    error // ends the run behind this batch
}

// Run copies every record of the sources, in order. It returns what was done also when it fails.
func Run(ctx context.Context, o Options) (Summary, error) {
	summary := Summary{Stored: map[normalize.Kind]int64{}}
	var writer *write.Writer
	if o.Conn != nil {
		writer = write.NewWriter(o.Conn, o.Logger)
	}
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan batch)
	group.Go(func() error {
		defer close(batches)
		return read(ctx, o, batches)
	})
	group.Go(func() error {
		var bytes int64
		for b := range batches {
			if writer != nil {
				if err := writer.Write(ctx, b.Batch); err != nil {
					return err
				}
			}
			summary.Read += b.read
			summary.Rejected += b.bad
			summary.Stored[normalize.KindAgent] += int64(len(b.Agents))
			summary.Stored[normalize.KindRun] += int64(len(b.Runs))
			summary.Stored[normalize.KindAttribution] += int64(len(b.Attributions))
			bytes += b.bytes
			if o.Progress != nil {
				o.Progress(Progress{b.source, summary, bytes})
			}
			if b.err != nil {
				return b.err
			}
		}
		return nil
	})
	return summary, group.Wait()
}

// read fills batches from the sources. An error of the input travels with the last batch, so that
// what was read before it is stored.
func read(ctx context.Context, o Options, batches chan<- batch) error {
	send := func(b batch) error {
		select {
		case batches <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, s := range o.Sources {
		next := batch{source: s.Name}
		err := lines(s, func(line source.Line) error {
			next.read++
			next.bytes += int64(len(line.Text)) + 1
			record, fault := decode(line)
			if fault != nil {
				next.bad++
				if err := o.OnReject(newReject(s.Name, line, fault)); err != nil {
					return fmt.Errorf("write the rejects: %w", err)
				}
				if o.StopOnError {
					return fmt.Errorf("%w: %s line %d: %w", ErrRejected, s.Name, line.Number, fault)
				}
				return nil
			}
			next.Add(record)
			if next.Len() < batchRows && next.bytes < batchBytes {
				return nil
			}
			full := next
			next = batch{source: s.Name}
			if err := send(full); err != nil {
				return err
			}
			select {
			case <-o.Stop:
				return ErrStopped
			default:
				return nil
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		next.err = err
		if err := send(next); err != nil {
			return err
		}
		if next.err != nil {
			return nil
		}
	}
	return nil
}

// lines calls do with every line of a source.
func lines(s Source, do func(source.Line) error) error {
	in, err := s.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	for reader := source.NewLines(in); ; {
		line, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Name, err)
		}
		if err := do(line); err != nil {
			return err
		}
	}
}

func decode(line source.Line) (normalize.Record, error) {
	if line.Fault != nil {
		return nil, &normalize.Error{Reason: line.Fault.Error()}
	}
	return normalize.JSON(line.Text)
}
