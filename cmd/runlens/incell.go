package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// movePoll is the pause between two looks whether a move is over.
const movePoll = 200 * time.Millisecond

// A use is what is done with the store of an organization's cell.
type use bool

const (
	reading use = false
	// changing is done again in the new cell if the organization was moved meanwhile, so it has to bear that.
	changing use = true
)

// inCellOf does something with the store of an organization's cell, whatever other cells say where that is. What
// changes something waits while the organization is being moved.
func (f storeFlags) inCellOf(
	ctx context.Context, organization schema.OrganizationID, how use, logger *slog.Logger,
	do func(*clickhouse.Server) error,
) error {
	p, err := f.place(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.inCellOf(ctx, organization, how, logger, do)
}

func (p *placed) inCellOf(
	ctx context.Context, organization schema.OrganizationID, how use, logger *slog.Logger,
	do func(*clickhouse.Server) error,
) error {
	for waited := false; ; {
		done, err := p.try(ctx, organization, how, logger, do)
		if err != nil || done {
			return err
		}
		if err := awaitMove(ctx, &waited, logger, "organization", organization); err != nil {
			return err
		}
	}
}

// awaitMove is the pause between two looks whether a move is over. It logs the first one, with further attributes.
func awaitMove(ctx context.Context, waited *bool, logger *slog.Logger, attributes ...any) error {
	if !*waited {
		*waited = true
		logger.Warn(write.MovingText, attributes...)
	}
	return snapshot.Pause(ctx, movePoll)
}

// try does it once. It is not done if the organization is, or was meanwhile, being moved.
func (p *placed) try(
	ctx context.Context, organization schema.OrganizationID, how use, logger *slog.Logger,
	do func(*clickhouse.Server) error,
) (done bool, err error) {
	name := p.nameOf(organization)
	if how == changing {
		moved, err := p.change(ctx, name, []schema.OrganizationID{organization}, cells.Pass.Open, logger,
			func(store *clickhouse.Server, _ []schema.OrganizationID) error { return do(store) })
		return err == nil && len(moved) == 0, err
	}
	store, err := p.openOne(ctx, name, logger)
	if err != nil {
		return false, err
	}
	defer store.Close()
	here, err := p.directory.Here(ctx, name, store.Conn(), time.Now())
	if err != nil || !here(organization) {
		return false, err
	}
	return true, do(store)
}

// change changes something of organizations in a cell, of those that may be changed there. It returns the others, and
// those that were moved meanwhile: it has to be done where they are then.
func (p *placed) change(
	ctx context.Context, name string, organizations []schema.OrganizationID,
	may func(cells.Pass, schema.OrganizationID) bool, logger *slog.Logger,
	do func(*clickhouse.Server, []schema.OrganizationID) error,
) (moved []schema.OrganizationID, err error) {
	store, err := p.openOne(ctx, name, logger)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if p.directory == nil {
		return nil, do(store, organizations)
	}
	if _, err := p.directory.Told(ctx, name, store.Conn(), time.Now()); err != nil {
		return nil, err
	}
	pass, err := p.flags[name].gate(store.Conn()).Pass(ctx)
	if err != nil {
		return nil, err
	}
	changed := map[schema.OrganizationID]bool{}
	var here []schema.OrganizationID
	for _, organization := range organizations {
		if !may(pass, organization) {
			moved = append(moved, organization)
			continue
		}
		here, changed[organization] = append(here, organization), true
	}
	if len(here) == 0 {
		return moved, nil
	}
	if err := do(store, here); err != nil {
		return moved, err
	}
	refused, err := pass.Refused(ctx, changed)
	return slices.AppendSeq(moved, maps.Keys(refused)), err
}

// openOne opens the store of a cell. The error is cells.ErrUnknownCell where the file names no such cell.
func (p *placed) openOne(ctx context.Context, name string, logger *slog.Logger) (*clickhouse.Server, error) {
	flags, known := p.flags[name]
	if !known {
		return nil, cells.ErrUnknownCell
	}
	return openMigrated(ctx, flags, logger)
}
