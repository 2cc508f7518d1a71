package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"text/tabwriter"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

type cellsCmd struct {
	List cellsListCmd `cmd:"" help:"Show the cells, and which part of the organizations is in each."`
	Of   cellsOfCmd   `cmd:"" help:"Say in which cell an organization is."`
}

func (cellsCmd) Help() string {
	return `A cell is one ClickHouse service with everything of its organizations. The file of RUNLENS_CELLS names them.

Example:
  runlens cells list --cells cells.yaml`
}

type cellsListCmd struct {
	storeFlags
	JSON bool `help:"Print the cells as JSON, one object a line."`
}

func (cellsListCmd) Help() string {
	return `An organization is in one of 256 slots, and each slot is in one cell. A cell that can't be opened is away: what
is wrong with it stands beside it, and the exit code is 1. The first start of all places the organizations.

Example:
  runlens cells list --cells cells.yaml`
}

// A listedCell is a cell as cells list prints it as JSON.
type listedCell struct {
	Cell  string `json:"cell"`
	Slots int    `json:"slots"`
	Share string `json:"share"` // of all slots
	Away  string `json:"away,omitempty"`
}

func (c cellsListCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	p, err := c.inCells(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	listed := make([]listedCell, len(p.names))
	var opening sync.WaitGroup
	for i, name := range p.names {
		slots := p.placement.Count(name)
		listed[i] = listedCell{Cell: name, Slots: slots, Share: fmt.Sprintf("%.1f %%", 100*float64(slots)/cells.Slots)}
		opening.Go(func() {
			store, err := openMigrated(ctx, p.flags[name], logger)
			if err != nil {
				listed[i].Away = oneLine(err)
				return
			}
			store.Close()
		})
	}
	opening.Wait()
	if err := c.print(io, listed); err != nil {
		return err
	}
	for _, one := range listed {
		if one.Away != "" {
			return exitError{exitFailed}
		}
	}
	return nil
}

func (c cellsListCmd) print(io streams, listed []listedCell) error {
	if c.JSON {
		encoder := json.NewEncoder(io.out)
		for _, one := range listed {
			if err := encoder.Encode(one); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CELL\tSLOTS\tSHARE\tSTATE")
	for _, one := range listed {
		state := "open"
		if one.Away != "" {
			state = "away: " + one.Away
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", one.Cell, one.Slots, one.Share, state)
	}
	return table.Flush()
}

type cellsOfCmd struct {
	storeFlags
	Org string `arg:"" help:"The organization."`
}

func (cellsOfCmd) Help() string {
	return `Example:
  runlens cells of acme --cells cells.yaml`
}

func (c cellsOfCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("the organization %w", err)}
	}
	p, err := c.inCells(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = fmt.Fprintln(io.out, p.nameOf(organization))
	return err
}

// inCells is place for commands that are about cells.
func (f storeFlags) inCells(ctx context.Context, logger *slog.Logger) (*placed, error) {
	if f.Cells == "" {
		return nil, usageError{fmt.Errorf("--cells is missing: the file that names the cells")}
	}
	return f.place(ctx, logger)
}
