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

// Excludes is that of the Writer of the record's organization; nil where none is, of which Write says that.
func (s *Split) Excludes(a *normalize.Attribution) error {
	if i := s.of(a.OrganizationID); i >= 0 {
		return s.writers[i].Excludes(a)
	}
	return nil
}

// movedPoll is the pause between two looks whether a move is over, movedSay that between two lines of the log about it.
const (
	movedPoll = 200 * time.Millisecond
	movedSay  = time.Minute
)

// MovingText is the line of the log of whoever waits for a move.
const MovingText = "an organization is being moved to another cell; waiting for that. If it takes long, the move has " +
	"ended early: 'runlens cells list' shows it, and the same 'runlens cells move' goes on"

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
		taken, err := s.takeClosed(ctx, parts)
		if err != nil {
			return err
		}
		refused, err := s.writeAll(ctx, parts)
		if err != nil {
			return err
		}
		rest = taken
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
				rest.add(p, p.only(refused, p.at))
			}
		}
		if err := s.awaitMoves(ctx, rest.Organizations()); err != nil {
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

// takeClosed takes out of the parts what may not be written now: nobody should see it before it is where it stays.
func (s *Split) takeClosed(ctx context.Context, parts []part) (taken part, err error) {
	for i, w := range s.writers {
		p := &parts[i]
		organizations := p.Organizations()
		closed, err := w.Closed(ctx, organizations)
		if err != nil {
			return taken, err
		}
		if len(closed) == 0 {
			continue
		}
		maps.DeleteFunc(organizations, func(o schema.OrganizationID, _ bool) bool { return closed[o] })
		away := part{Batch: p.Batch}
		taken.add(&away, away.only(closed, p.at))
		p.at = p.only(organizations, p.at)
	}
	return taken, nil
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
			closed, err := s.writers[i].Closed(ctx, map[schema.OrganizationID]bool{organization: true})
			if err != nil {
				return err
			}
			if len(closed) == 0 {
				break
			}
			if time.Since(said) > movedSay {
				said = time.Now()
				s.writers[i].retry.Logger.Warn(MovingText, "organization", organization)
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

// add adds the records of another part, of which the attribution records were at some places in the batch.
func (p *part) add(other *part, at []int) {
	p.Agents, p.Runs = append(p.Agents, other.Agents...), append(p.Runs, other.Runs...)
	p.Attributions, p.at = append(p.Attributions, other.Attributions...), append(p.at, at...)
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
