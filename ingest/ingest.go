// Package ingest copies records into the store: a source's records are normalized, what breaks a
// rule is rejected alone with its reason, and the rest is written in batches.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/trace"
)

// A batch ends at whichever bound it reaches first, and goes on over the next file
// (schema/decisions/ingest-batches.md). While writers are at work on some batches, one more is being filled; their
// memory is used again.
const (
	batchRows   = 50_000
	batchBytes  = 10 << 20 // of the values of records, and of rejects
	writers     = 2
	liveBatches = writers + 1
)

// Patience is how long what fails for a passing reason is tried again before a run gives up.
const Patience = 2 * time.Minute

// Options say what Run does.
type Options struct {
	Sources  []*source.File
	Writer   Writer             // nil for a dry run: everything is read and checked, nothing is written
	OnReject func(Reject) error // in order, before the records around it are acknowledged
	// StopOnError ends the run at the first reject: what came before it is stored, and what comes after it is not, but
	// for what is being inserted at the moment at which a person is purged.
	StopOnError bool
	Stop        <-chan struct{} // when closed: write what was read, and end; also while a source waits for input
	Progress    func(Progress)  // after every batch; nil for none
	Logger      *slog.Logger
	Tracer      trace.Tracer // of batches

	// From is where an earlier run of the same sources stopped, the zero Progress to begin again.
	// Acknowledged takes note of how far the store has everything; nil for nobody.
	From         Progress
	Acknowledged func(context.Context, Progress) error
}

// A Writer stores batches, as those of package write do.
type Writer interface {
	Write(context.Context, *write.Batch) error
	// ReadPurged reads who was purged, and Excludes says why an attribution record stays out by that; nil if it does not.
	ReadPurged(context.Context) error
	Excludes(*normalize.Attribution) error
}

// NewWriter returns a Writer into the database of conn that tries again for Patience what fails for a passing reason.
func NewWriter(conn driver.Conn, logger *slog.Logger) *write.Writer {
	return write.NewWriter(conn, write.Retry{Logger: logger, Patience: Patience})
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
	Anonymous    int64 `json:"anonymous,omitzero"` // of Runs, stored without the initiator, who was purged
}

// ErrRejected ends a run whose options say to stop at the first reject.
var ErrRejected = errors.New("stopped at the first rejected record")

// ErrStopped ends a run that was stopped before it had read everything. What was read is stored; a record whose
// last byte had not come counts as not read.
var ErrStopped = errors.New("stopped before the end; what was read is stored")

// Run copies every record of the sources, in order. It returns what was done, earlier runs that it
// continues included, also when it fails.
func Run(ctx context.Context, o Options) (Summary, error) {
	o.Sources = slices.Clone(o.Sources)
	for i, file := range o.Sources {
		stopped := *file
		stopped.Stop = o.Stop
		o.Sources[i] = &stopped
	}
	if o.Writer != nil {
		if err := o.Writer.ReadPurged(ctx); err != nil {
			return o.From.Summary, err
		}
	}
	p := newPipeline(o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.read(ctx) })
	atOnce := writers
	if o.StopOnError {
		atOnce = 1 // nothing is written that comes after a reject
	}
	for range atOnce {
		group.Go(func() error { p.write(ctx); return nil })
	}
	group.Go(func() error { return p.acknowledge(ctx) })
	err := group.Wait()
	return p.done.Summary, err
}
