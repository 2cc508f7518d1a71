package write

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
)

// A Split writes each record of a batch into the store of its organization. It is safe for concurrent use.
type Split struct {
	of      func(schema.OrganizationID) int
	writers []*Writer
}

// NewSplit returns a Split over writers, of which of says which one an organization's is, by its index.
func NewSplit(of func(schema.OrganizationID) int, writers ...*Writer) *Split {
	return &Split{of, writers}
}

// ReadPurged reads the lists of purged people of all stores.
func (s *Split) ReadPurged(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range s.writers {
		group.Go(func() error { return w.ReadPurged(ctx) })
	}
	return group.Wait()
}

// Excludes is that of the Writer of the record's organization.
func (s *Split) Excludes(a *normalize.Attribution) error {
	return s.writers[s.of(a.OrganizationID)].Excludes(a)
}

// Write does what Writer.Write does, in all stores at once. It returns when each has acknowledged its part. What one
// has stored stays when another one fails.
func (s *Split) Write(ctx context.Context, b *Batch) error {
	parts := make([]part, len(s.writers))
	for _, a := range b.Agents {
		p := &parts[s.of(a.OrganizationID)]
		p.Agents = append(p.Agents, a)
	}
	for _, r := range b.Runs {
		p := &parts[s.of(r.OrganizationID)]
		p.Runs = append(p.Runs, r)
	}
	for i, a := range b.Attributions {
		p := &parts[s.of(a.OrganizationID)]
		p.Attributions, p.at = append(p.Attributions, a), append(p.at, i)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, w := range s.writers {
		group.Go(func() error { return w.Write(ctx, &parts[i].Batch) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.Attributions = b.Attributions[:0]
	for i := range parts {
		p := &parts[i]
		b.Attributions = append(b.Attributions, p.Attributions...)
		for _, e := range p.Excluded {
			e.Index = p.at[e.Index]
			b.Excluded = append(b.Excluded, e)
		}
		b.Anonymous += p.Anonymous
	}
	return nil
}

// A part is what one store gets of a batch.
type part struct {
	Batch
	at []int // of its attribution records, in the batch
}
