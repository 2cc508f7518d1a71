package write

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A Split writes each record of a batch into the store of its organization. It is safe for concurrent use.
type Split struct {
	of      func(schema.OrganizationID) int
	writers []*Writer
}

// NewSplit returns a Split over writers, of which of says which one an organization's is, by its index; less than 0 for
// none.
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

// movedPoll is the pause between two looks whether a move is over, movedSay that between two lines of the log about it.
const (
	movedPoll = 200 * time.Millisecond
	movedSay  = time.Minute
)

// Write does what Writer.Write does, in all stores at once. It returns when each has acknowledged its part. What one
// has stored stays when another one fails. Records of organizations that are moved meanwhile are written again where
// those are then; while that is not known, it waits.
func (s *Split) Write(ctx context.Context, b *Batch) error {
	rest := part{Batch: Batch{Agents: b.Agents, Runs: b.Runs, Attributions: b.Attributions}}
	for i := range b.Attributions {
		rest.at = append(rest.at, i)
	}
	stored := b.Attributions[:0] // parts have copies
	for rest.Len() > 0 {
		parts, err := s.divide(&rest)
		if err != nil {
			return err
		}
		refused, err := s.writeAll(ctx, parts)
		if err != nil {
			return err
		}
		rest = part{}
		for i := range parts {
			p := &parts[i]
			for _, e := range p.Excluded {
				e.Index = p.at[e.Index]
				b.Excluded = append(b.Excluded, e)
			}
			b.Anonymous += p.Anonymous
			p.at = p.stay()
			for _, a := range p.Attributions {
				if !refused[a.OrganizationID] {
					stored = append(stored, a)
				}
			}
			if len(refused) > 0 {
				at := p.only(refused, p.at)
				rest.Agents, rest.Runs = append(rest.Agents, p.Agents...), append(rest.Runs, p.Runs...)
				rest.Attributions, rest.at = append(rest.Attributions, p.Attributions...), append(rest.at, at...)
			}
		}
		if err := s.awaitMoves(ctx, refused); err != nil {
			return err
		}
	}
	b.Attributions = stored
	return nil
}

// divide gives each store its part of the records.
func (s *Split) divide(rest *part) ([]part, error) {
	parts := make([]part, len(s.writers))
	var nowhere part
	of := func(o schema.OrganizationID) *part {
		if i := s.of(o); i >= 0 {
			return &parts[i]
		}
		return &nowhere
	}
	for _, a := range rest.Agents {
		p := of(a.OrganizationID)
		p.Agents = append(p.Agents, a)
	}
	for _, r := range rest.Runs {
		p := of(r.OrganizationID)
		p.Runs = append(p.Runs, r)
	}
	for i, a := range rest.Attributions {
		p := of(a.OrganizationID)
		p.Attributions, p.at = append(p.Attributions, a), append(p.at, rest.at[i])
	}
	if nowhere.Len() > 0 {
		return nil, cells.ErrUnknownCell
	}
	return parts, nil
}

// writeAll writes the parts, and returns which organizations were moved meanwhile.
func (s *Split) writeAll(ctx context.Context, parts []part) (map[schema.OrganizationID]bool, error) {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	refused := map[schema.OrganizationID]bool{}
	for i, w := range s.writers {
		group.Go(func() error {
			err := w.Write(ctx, &parts[i].Batch)
			var moved *MovedError
			if !errors.As(err, &moved) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(refused, moved.Organizations)
			return nil
		})
	}
	return refused, group.Wait()
}

// awaitMoves waits until organizations may be written where they are.
func (s *Split) awaitMoves(ctx context.Context, organizations map[schema.OrganizationID]bool) error {
	var said time.Time
	for organization := range organizations {
		for {
			i := s.of(organization)
			if i < 0 {
				return cells.ErrUnknownCell
			}
			w := s.writers[i]
			var writes bool
			err := w.retry.Do(ctx, "find out where organizations are", func() (err error) {
				writes, err = w.Gate.Writes(ctx, organization)
				return err
			})
			if err != nil {
				return err
			}
			if writes {
				break
			}
			if time.Since(said) > movedSay {
				said = time.Now()
				w.retry.Logger.Info("waiting until an organization has been moved to another cell", "organization", organization)
			}
			if err := snapshot.Pause(ctx, movedPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

// A part is what one store gets of a batch.
type part struct {
	Batch
	at []int // of its attribution records, in the batch
}

// stay is at of the attribution records that were not taken out.
func (p *part) stay() []int {
	out := map[int]bool{}
	for _, e := range p.Excluded {
		out[e.Index] = true
	}
	stay := make([]int, 0, len(p.Attributions))
	for i, at := range p.at {
		if !out[i] {
			stay = append(stay, at)
		}
	}
	return stay
}
