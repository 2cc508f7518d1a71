package ingest

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/trace"
)

// A batch is a batch of records and what was read for it.
type batch struct {
	write.Batch
	read      int64
	rejects   []Reject
	origins   []origin        // of the attribution records
	bytes     int64           // of its values and rejects, about
	source    int             // where the batch ends
	position  source.Position // in it
	bytesRead int64
	err       error // ends the run after this batch
	stored    chan error
}

// A pipeline carries batches from the reader to writers, who work side by side, and from both to whoever acknowledges
// them in their order, so that nothing before a checkpoint is missing.
type pipeline struct {
	Options
	spare   chan *batch // that are free
	toWrite chan *batch
	ordered chan *batch // that were read; takes all without waiting
	done    Progress    // what was acknowledged
}

func newPipeline(o Options) *pipeline {
	p := &pipeline{
		Options: o, done: o.From,
		spare: make(chan *batch, liveBatches), toWrite: make(chan *batch), ordered: make(chan *batch, liveBatches),
	}
	for range liveBatches {
		p.spare <- &batch{}
	}
	return p
}

// read sends the batches of all sources.
func (p *pipeline) read(ctx context.Context) error {
	defer close(p.ordered)
	defer close(p.toWrite)
	return read(ctx, p.Options, p.spare, func(b *batch) error {
		p.ordered <- b
		select {
		case p.toWrite <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// write stores batches until the last one.
func (p *pipeline) write(ctx context.Context) {
	for b := range p.toWrite {
		err := p.traced(ctx, b)
		last := b.err != nil // the batch is another one's once it says that it is stored
		b.stored <- err
		if last {
			return
		}
	}
}

// acknowledge reports each batch that is stored, and the rejects of it before, and gives the batch back.
func (p *pipeline) acknowledge(ctx context.Context) error {
	for b := range p.ordered {
		select {
		case err := <-b.stored:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, reject := range b.rejects {
			if err := p.OnReject(reject); err != nil {
				return fmt.Errorf("write the rejects: %w", err)
			}
		}
		p.done.add(b)
		if p.Progress != nil {
			p.Progress(p.done)
		}
		if p.Acknowledged != nil && !errors.Is(b.err, ErrRejected) {
			if err := p.Acknowledged(ctx, p.done); err != nil {
				return err
			}
		}
		if b.err != nil {
			return b.err
		}
		p.spare <- b
	}
	return nil
}

// traced is store as a trace of its own.
func (p *pipeline) traced(ctx context.Context, b *batch) error {
	ctx, span := p.Tracer.Begin(ctx, "ingest batch")
	trace.Describe(ctx, func() []attribute.KeyValue {
		return []attribute.KeyValue{
			attribute.Int("runlens.records", b.Len()), attribute.Int("runlens.rejected", len(b.rejects)),
		}
	})
	err := p.store(ctx, b)
	trace.End(span, err)
	return err
}

func (p *Progress) add(b *batch) {
	p.Summary.Read += b.read
	p.Summary.Rejected += int64(len(b.rejects))
	p.Summary.Anonymous += int64(b.Anonymous)
	p.Summary.Agents += int64(len(b.Agents))
	p.Summary.Runs += int64(len(b.Runs))
	p.Summary.Attributions += int64(len(b.Attributions))
	p.Source, p.Position, p.BytesRead = b.source, b.position, b.bytesRead
}
