package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// read fills batches from the sources. An error of the input travels with the last batch, so that
// what was read before it is stored.
func read(ctx context.Context, o Options, spare <-chan *batch, send func(*batch) error) error {
	f := filler{o: o, normalizer: normalize.NewNormalizer(), index: o.From.Source, spare: spare,
		send: send}
	if f.index >= len(o.Sources) {
		return nil
	}
	at := o.From.Position
	if err := f.begin(ctx, at); err != nil {
		return err
	}
	for ; f.index < len(o.Sources) && f.next.err == nil; f.index++ {
		f.file = o.Sources[f.index]
		if f.next.read > 0 && !f.file.Regular { // nobody knows how long it waits for input
			if err := f.flush(ctx, f.next.position); err != nil {
				return err
			}
		}
		f.next.source, f.next.position, f.next.bytesRead = f.index, at, 0
		f.next.err = f.fill(ctx, at)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at = source.Position{}
	}
	return send(f.next)
}

// A filler fills batches from one source after another.
type filler struct {
	o          Options
	file       *source.File
	normalizer *normalize.Normalizer
	index      int // of file
	spare      <-chan *batch
	send       func(*batch) error
	next       *batch
}

// begin takes a batch that nobody needs any more.
func (f *filler) begin(ctx context.Context, at source.Position) error {
	select {
	case b := <-f.spare:
		b.Clear()
		*b = batch{Batch: b.Batch, origins: b.origins[:0], source: f.index, position: at, stored: make(chan error, 1)}
		f.next = b
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush sends the batch and begins another one.
func (f *filler) flush(ctx context.Context, at source.Position) error {
	if err := f.send(f.next); err != nil {
		return err
	}
	return f.begin(ctx, at)
}

// fill reads the file from a position to its end.
func (f *filler) fill(ctx context.Context, at source.Position) error {
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
			f.next.bytesRead = f.file.BytesRead()
			return nil
		}
		if err != nil {
			return f.failure(err)
		}
		err = f.add(record)
		f.next.position, f.next.bytesRead = in.Position(), f.file.BytesRead()
		if err != nil {
			return err
		}
		if f.next.read < batchRows && f.next.bytes < batchBytes {
			continue
		}
		if err := f.flush(ctx, f.next.position); err != nil {
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

// rejectBytes is about how much memory a reject takes besides its record.
const rejectBytes = 512

// add puts a record into the batch or says why not.
func (f *filler) add(record *source.Record) error {
	before := f.next.originOf(f.index, record)
	f.next.read++
	fault := record.Fault
	if fault == nil {
		fault = f.next.Add(f.normalizer, &record.Raw)
	}
	if fault == nil && record.Raw.Kind == normalize.KindAttribution {
		fault = f.excluded()
	}
	if fault == nil {
		for _, value := range record.Raw.Values {
			f.next.bytes += int64(len(value))
		}
		if record.Raw.Kind == normalize.KindAttribution {
			f.next.origins = append(f.next.origins, before)
		}
		return nil
	}
	reject := NewReject(f.file.Name, record, fault)
	f.next.bytes += int64(len(reject.Record)) + rejectBytes
	f.next.rejects = append(f.next.rejects, reject)
	if f.o.StopOnError {
		return stoppedAt(reject)
	}
	return nil
}

func stoppedAt(r Reject) error {
	return fmt.Errorf("%w: %s line %d: %w", ErrRejected, r.Source, r.Line,
		&normalize.Error{Field: r.Field, Reason: r.Error})
}

// excluded takes the last attribution record out of the batch again if its person was purged, and says so.
func (f *filler) excluded() error {
	if f.o.Writer == nil {
		return nil
	}
	last := len(f.next.Attributions) - 1
	fault := f.o.Writer.Excludes(&f.next.Attributions[last])
	if fault != nil {
		f.next.Attributions = f.next.Attributions[:last]
	}
	return fault
}
