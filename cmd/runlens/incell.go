package main

import (
	"context"
	"log/slog"
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
		if !waited {
			waited = true
			logger.Warn(write.MovingText, "organization", organization)
		}
		if err := snapshot.Pause(ctx, movePoll); err != nil {
			return err
		}
	}
}

// try does it once. It is not done if the organization is, or was meanwhile, being moved.
func (p *placed) try(
	ctx context.Context, organization schema.OrganizationID, how use, logger *slog.Logger,
	do func(*clickhouse.Server) error,
) (done bool, err error) {
	flags, known := p.flags[p.nameOf(organization)]
	if !known {
		return false, cells.ErrUnknownCell
	}
	store, err := openMigrated(ctx, flags, logger)
	if err != nil {
		return false, err
	}
	defer store.Close()
	if p.directory == nil {
		return true, do(store)
	}
	told, err := p.directory.Told(ctx, flags.cell, store.Conn(), time.Now())
	if err != nil || !told.Reads(flags.cell, organization) {
		return false, err
	}
	if how == reading {
		return true, do(store)
	}
	pass, err := flags.gate(store.Conn()).Pass(ctx)
	if err != nil || !pass.Open(organization) {
		return false, err
	}
	if err := do(store); err != nil {
		return false, err
	}
	refused, err := pass.Refused(ctx, map[schema.OrganizationID]bool{organization: true})
	return err == nil && len(refused) == 0, err
}
