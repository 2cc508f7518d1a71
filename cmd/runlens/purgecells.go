package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// inCells purges organizations in their cells, and takes out what others have of them. Those that are moved meanwhile
// are purged again where they are then.
func (c purgeCmd) inCells(
	ctx context.Context, p *placed, organizations []schema.OrganizationID, logger *slog.Logger, io streams,
) error {
	pending, failed, waited := organizations, []error{}, false
	for len(pending) > 0 {
		inCell := map[string][]schema.OrganizationID{}
		for _, organization := range pending {
			name := p.nameOf(organization)
			inCell[name] = append(inCell[name], organization)
		}
		pending = nil
		for name, of := range inCell {
			moved, err := c.inCell(ctx, p, name, of, logger, io)
			pending = append(pending, moved...)
			if err != nil {
				failed = append(failed, ofCell(name, err))
			}
		}
		if len(pending) > 0 {
			if !waited {
				waited = true
				logger.Warn(write.MovingText, "organization", pending)
			}
			if err := snapshot.Pause(ctx, movePoll); err != nil {
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

// inCell purges organizations in a cell, and returns those that are, or were meanwhile, being moved.
func (c purgeCmd) inCell(
	ctx context.Context, p *placed, name string, organizations []schema.OrganizationID, logger *slog.Logger, io streams,
) (moved []schema.OrganizationID, err error) {
	flags, known := p.flags[name]
	if !known {
		return nil, cells.ErrUnknownCell
	}
	store, err := openMigrated(ctx, flags, logger)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if p.directory == nil {
		return nil, c.purge(ctx, store, organizations, logger, io)
	}
	if _, err := p.directory.Told(ctx, name, store.Conn(), time.Now()); err != nil {
		return nil, err
	}
	pass, err := flags.gate(store.Conn()).Pass(ctx)
	if err != nil {
		return nil, err
	}
	purged := map[schema.OrganizationID]bool{}
	var here []schema.OrganizationID
	for _, organization := range organizations {
		if !pass.Open(organization) {
			moved = append(moved, organization)
			continue
		}
		here, purged[organization] = append(here, organization), true
	}
	if len(here) == 0 {
		return moved, nil
	}
	if err := c.purge(ctx, store, here, logger, io); err != nil {
		return moved, err
	}
	refused, err := pass.Refused(ctx, purged)
	for organization := range refused {
		moved = append(moved, organization)
	}
	return moved, err
}

// elsewhere takes out what a cell has of organizations that were in it, or are being moved there: what a writer stored
// too late, and died.
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
	store, err := openMigrated(ctx, p.flags[name], logger)
	if err != nil {
		return err
	}
	defer store.Close()
	return move.TakeOut(ctx, name, store.Conn(), others...)
}
