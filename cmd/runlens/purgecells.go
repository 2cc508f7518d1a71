package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

// inCells purges organizations in their cells, and takes out what others have of them. Those that are moved meanwhile
// are purged again where they are then.
func (c purgeCmd) inCells(
	ctx context.Context, p *placed, organizations []schema.OrganizationID, logger *slog.Logger, io streams,
) error {
	pending, failed, waited := organizations, []error{}, false
	// A move that has ended early left a copy in the cell to which it goes, which is taken out when it goes on.
	may := cells.Pass.Rests
	if c.DryRun || c.Lift {
		may = cells.Pass.Open
	}
	for len(pending) > 0 {
		inCell := map[string][]schema.OrganizationID{}
		for _, organization := range pending {
			name := p.nameOf(organization)
			inCell[name] = append(inCell[name], organization)
		}
		pending = nil
		for name, of := range inCell {
			here, arriving, err := c.arrived(ctx, p, name, of, logger)
			pending = append(pending, arriving...)
			if err != nil {
				failed = append(failed, err)
			}
			if len(here) == 0 {
				continue
			}
			moved, err := p.change(ctx, name, here, may, logger,
				func(store *clickhouse.Server, here []schema.OrganizationID) error {
					return c.purge(ctx, store, here, logger, io)
				})
			pending = append(pending, moved...)
			if err != nil {
				failed = append(failed, ofCell(name, err))
			}
		}
		if len(pending) > 0 {
			if err := awaitMove(ctx, &waited, logger, "organization", pending); err != nil {
				return errors.Join(append(failed, err)...)
			}
		}
	}
	if p.directory != nil && !c.DryRun && !c.Lift {
		for _, name := range p.names {
			failed = append(failed, ofCell(name, c.elsewhere(ctx, p, name, organizations, logger)))
		}
	}
	return errors.Join(failed...)
}

// arrived tells apart the organizations that were never moved, or whose move to a cell has ended, from those whose old
// cell is not purged yet: until then it copies what servers noted there of questions, which would come after the purge.
// It was known before that they are in the cell, so that no other move to it begins unless they leave it (change).
// Where a cell cannot be asked, the error is of those that were ever moved.
func (c purgeCmd) arrived(
	ctx context.Context, p *placed, name string, organizations []schema.OrganizationID, logger *slog.Logger,
) (here, arriving []schema.OrganizationID, err error) {
	if p.directory == nil || c.DryRun || c.Person != "" {
		return organizations, nil, nil
	}
	var moved []schema.OrganizationID
	for _, o := range organizations {
		if p.directory.Placement().Moved(o) {
			moved = append(moved, o)
		} else {
			here = append(here, o)
		}
	}
	for _, other := range p.names {
		if other == name || len(moved) == 0 {
			continue
		}
		told, err := p.toldBy(ctx, other, logger)
		if err != nil {
			return here, arriving, ofCell(other, err)
		}
		moved = slices.DeleteFunc(moved, func(o schema.OrganizationID) bool {
			leaves := told.Leaves(o, name)
			if leaves {
				arriving = append(arriving, o)
			}
			return leaves
		})
	}
	return append(here, moved...), arriving, nil
}

// toldBy reads what a cell's store says.
func (p *placed) toldBy(ctx context.Context, name string, logger *slog.Logger) (told cells.Told, err error) {
	err = p.flags[name].withStore(ctx, logger, func(store *clickhouse.Server) (err error) {
		told, err = p.directory.Told(ctx, name, store.Conn(), time.Now())
		return err
	})
	return told, err
}

// elsewhere takes out what a cell has of organizations that were in it, or are being moved there: what a writer stored
// too late, and died. It waits until the files of what a move took out are deleted.
func (c purgeCmd) elsewhere(
	ctx context.Context, p *placed, name string, organizations []schema.OrganizationID, logger *slog.Logger,
) error {
	var others []schema.OrganizationID
	for _, organization := range organizations {
		if p.nameOf(organization) != name && p.directory.Placement().Moved(organization) {
			others = append(others, organization)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return p.flags[name].withStore(ctx, logger, func(store *clickhouse.Server) error {
		if err := move.TakeOut(ctx, name, store.Conn(), others...); err != nil {
			return err
		}
		if err := purge.Sweep(ctx, store.Conn()); err != nil {
			return err
		}
		return nothingLeft(ctx, purge.Organization(), store, logger)
	})
}
