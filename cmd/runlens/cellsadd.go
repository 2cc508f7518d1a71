package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap/cells"
)

type cellsAddCmd struct {
	storeFlags
	Cell string `arg:"" help:"The new cell, as the file of cells names it."`
}

func (cellsAddCmd) Help() string {
	return `Makes the store of a cell that was written into the file one of the cells: it gets its name and the tables, and
no organizations. What gives it its part of them, by weight, is printed: one command a line. Start every server, worker
and ingest again with the file before the first of these commands.

Example:
  runlens cells add eu-3 --cells cells.yaml > moves.sh`
}

func (c cellsAddCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	p, err := c.inCells(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	flags, known := p.flags[c.Cell]
	if !known {
		return usageError{fmt.Errorf("the file of cells names no cell %q: write it there first", c.Cell)}
	}
	store, err := openForMoves(ctx, flags, logger)
	if err != nil {
		return ofCell(c.Cell, err)
	}
	defer store.Close()
	moves := p.directory.Placement().Share(c.Cell, p.list)
	say(io.err, "The cell %s is there. Start every server, worker and ingest again with this file; then move its part of"+
		" the organizations, %d of %d slots:", c.Cell, len(moves), cells.Slots)
	var failed error
	for _, slot := range moves {
		_, err := fmt.Fprintf(io.out, "runlens cells move %s --to %s --cells %s\n", slot, output.Quoted(c.Cell),
			output.Quoted(c.Cells))
		failed = errors.Join(failed, err)
	}
	return failed
}
