package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap/clickhouse"
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
			moved, err := p.change(ctx, name, of, logger,
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
