// Package ingest copies records into the store: a source's records are normalized, what breaks a
// rule is rejected alone with its reason, and the rest is written in batches.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
)

// A batch ends at whichever bound it reaches first (schema/decisions/ingest-batches.md). While writers are at work on
// some batches, one more is being filled; their memory is used again.
const (
	batchRows   = 50_000
	batchBytes  = 24 << 20 // of the records as they were written
	writers     = 2
	liveBatches = writers + 1
)

// Patience is how long what fails for a passing reason is tried again before a run gives up.
const Patience = 2 * time.Minute

// Options say what Run does.
type Options struct {
	Sources     []*source.File
	Conn        driver.Conn        // nil for a dry run: everything is read and checked, nothing is written
	OnReject    func(Reject) error // in order, before the records around it are acknowledged
	StopOnError bool               // end at the first reject; what came before it is stored
	Stop        <-chan struct{}    // when closed: write what was read, and end; also while a source waits for input
	Progress    func(Progress)     // after every batch; nil for none
	Logger      *slog.Logger

	// From is where an earlier run of the same sources stopped, the zero Progress to begin again.
	// Acknowledged takes note of how far the store has everything; nil for nobody.
	From         Progress
	Acknowledged func(context.Context, Progress) error
}

// A Progress says how far a run has come: every source before Source is done, and Source up to Position.
type Progress struct {
	Source   int             `json:"source"` // position in Options.Sources
	Position source.Position `json:"position"`
	Summary  Summary         `json:"summary"`

	BytesRead int64 `json:"-"` // of Source, as it is packed
}

// A Summary counts records.
type Summary struct {
	Read         int64 `json:"read"`   // right and wrong
	Agents       int64 `json:"agents"` // acknowledged by ClickHouse; in a dry run, that would be written
	Runs         int64 `json:"runs"`
	Attributions int64 `json:"attributions"`
	Rejected     int64 `json:"rejected"`
}

// ErrRejected ends a run whose options say to stop at the first reject.
var ErrRejected = errors.New("stopped at the first rejected record")

// ErrStopped ends a run that was stopped before it had read everything. What was read is stored; a record whose
// last byte had not come counts as not read.
var ErrStopped = errors.New("stopped before the end; what was read is stored")

// A batch is a batch of records and what was read for it.
type batch struct {
	write.Batch
	read      int64
	rejects   []Reject
	bytes     int64 // of the records' text, about
	source    int
	position  source.Position // after the batch
	bytesRead int64
	err       error // ends the run after this batch
	stored    chan error
}

// Run copies every record of the sources, in order. It returns what was done, earlier runs that it
// continues included, also when it fails.
func Run(ctx context.Context, o Options) (Summary, error) {
	done := o.From
	o.Sources = slices.Clone(o.Sources)
	for i, file := range o.Sources {
		stopped := *file
		stopped.Stop = o.Stop
		o.Sources[i] = &stopped
	}
	group, ctx := errgroup.WithContext(ctx)
	spare := make(chan *batch, liveBatches)
	for range liveBatches {
		spare <- &batch{}
	}
	// Batches are written side by side but acknowledged in order, so that nothing before a checkpoint is missing.
	ordered := make(chan *batch, liveBatches)
	toWrite := make(chan *batch)
	group.Go(func() error {
		defer close(ordered)
		defer close(toWrite)
		return read(ctx, o, spare, func(b *batch) error {
			ordered <- b // takes all batches without waiting
			select {
			case toWrite <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	writer := write.NewWriter(o.Conn, write.Retry{Logger: o.Logger, Patience: Patience})
	for range writers {
		group.Go(func() error {
			for b := range toWrite {
				var err error
				if o.Conn != nil {
					err = writer.Write(ctx, &b.Batch)
				}
				b.stored <- err
			}
			return nil
		})
	}
	group.Go(func() error {
		for b := range ordered {
			select {
			case err := <-b.stored:
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
			for _, reject := range b.rejects {
				if err := o.OnReject(reject); err != nil {
					return fmt.Errorf("write the rejects: %w", err)
				}
			}
			done.add(b)
			if o.Progress != nil {
				o.Progress(done)
			}
			if o.Acknowledged != nil && !errors.Is(b.err, ErrRejected) {
				if err := o.Acknowledged(ctx, done); err != nil {
					return err
				}
			}
			if b.err != nil {
				return b.err
			}
			spare <- b
		}
		return nil
	})
	err := group.Wait()
	return done.Summary, err
}

func (p *Progress) add(b *batch) {
	p.Summary.Read += b.read
	p.Summary.Rejected += int64(len(b.rejects))
	p.Summary.Agents += int64(len(b.Agents))
	p.Summary.Runs += int64(len(b.Runs))
	p.Summary.Attributions += int64(len(b.Attributions))
	p.Source, p.Position, p.BytesRead = b.source, b.position, b.bytesRead
}

// read fills batches from the sources. An error of the input travels with the last batch, so that
// what was read before it is stored.
func read(ctx context.Context, o Options, spare <-chan *batch, send func(*batch) error) error {
	normalizer := normalize.NewNormalizer()
	for i := o.From.Source; i < len(o.Sources); i++ {
		var at source.Position
		if i == o.From.Source {
			at = o.From.Position
		}
		f := filler{o: o, file: o.Sources[i], normalizer: normalizer, index: i, spare: spare}
		if err := f.begin(ctx, at); err != nil {
			return err
		}
		f.next.err = f.fill(ctx, at, send)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := send(f.next); err != nil {
			return err
		}
		if f.next.err != nil {
			return nil
		}
	}
	return nil
}

// A filler fills batches from one source.
type filler struct {
	o          Options
	file       *source.File
	normalizer *normalize.Normalizer
	index      int
	spare      <-chan *batch
	next       *batch
}

// begin takes a batch that nobody needs any more.
func (f *filler) begin(ctx context.Context, at source.Position) error {
	select {
	case b := <-f.spare:
		b.Clear()
		*b = batch{Batch: b.Batch, source: f.index, position: at, bytesRead: f.file.BytesRead(), stored: make(chan error, 1)}
		f.next = b
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *filler) fill(ctx context.Context, at source.Position, send func(*batch) error) error {
	in, err := f.file.From(at)
	if err != nil {
		return f.failure(err)
	}
	defer in.Close()
	for {
		select {
		case <-f.o.Stop:
			if !f.file.Waits() { // else what has come cannot be read again and is stored
				return ErrStopped
			}
		default:
		}
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.failure(err)
		}
		if err := f.add(record); err != nil {
			return err
		}
		f.next.position, f.next.bytesRead = in.Position(), f.file.BytesRead()
		if f.next.read < batchRows && f.next.bytes < batchBytes {
			continue
		}
		if err := send(f.next); err != nil {
			return err
		}
		if err := f.begin(ctx, f.next.position); err != nil {
			return err
		}
	}
}

// failure is the error of a source that cannot be read further.
func (f *filler) failure(err error) error {
	if errors.Is(err, source.ErrInterrupted) {
		return ErrStopped
	}
	return fmt.Errorf("read %s: %w", f.file.Name, err)
}

// add puts a record into the batch or says why not.
func (f *filler) add(record *source.Record) error {
	f.next.read++
	f.next.bytes += recordBytes(record)
	fault := record.Fault
	if fault == nil {
		fault = f.next.Add(f.normalizer, &record.Raw)
	}
	if fault == nil {
		return nil
	}
	f.next.rejects = append(f.next.rejects, NewReject(f.file.Name, record, fault))
	if f.o.StopOnError {
		return fmt.Errorf("%w: %s line %d: %w", ErrRejected, f.file.Name, record.Line, fault)
	}
	return nil
}

func recordBytes(r *source.Record) int64 {
	if r.Text != nil {
		return int64(len(r.Text))
	}
	total := 0
	for _, value := range r.Raw.Values {
		total += len(value)
	}
	return int64(total)
}
