package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

type cellsCmd struct {
	List  cellsListCmd  `cmd:"" help:"Show the cells, and which part of the organizations is in each."`
	Add   cellsAddCmd   `cmd:"" help:"Make a new store one of the cells, and print the moves that give it its part."`
	Of    cellsOfCmd    `cmd:"" help:"Say in which cell an organization is."`
	Move  cellsMoveCmd  `cmd:"" help:"Move an organization, or a slot, to another cell."`
	Drain cellsDrainCmd `cmd:"" help:"Move everything out of a cell."`
	DDL   cellsDDLCmd   `cmd:"" name:"ddl" help:"Print tables over all cells for SQL of your own."`
}

func (cellsCmd) Help() string {
	return `A cell is one ClickHouse service with everything of its organizations. The file of RUNLENS_CELLS names them.

Example:
  runlens cells list --cells cells.yaml`
}

type cellsListCmd struct {
	storeFlags
	JSON        bool   `help:"Print the cells as JSON, one object a line."`
	FromCluster string `placeholder:"NAME" help:"Print a file of cells of the shards of a ClickHouse cluster instead."`
}

func (cellsListCmd) Help() string {
	return `An organization is in one of 256 slots, and each slot is in one cell. A cell that can't be opened is away: what
is wrong with it stands beside it, and the exit code is 1. The first start of all places the organizations.
With --from-cluster it asks the server of --clickhouse-url for one of its clusters, and prints what a file of cells of
its shards is; passwords are to be added.

Example:
  runlens cells list --cells cells.yaml
  runlens cells list --from-cluster main --clickhouse-url clickhouse://runlens@ch1.internal:9000/runlens`
}

// A listedCell is a cell as cells list prints it as JSON.
type listedCell struct {
	Cell  string `json:"cell"`
	Slots int    `json:"slots"`
	Share string `json:"share"` // of all slots
	// Pinned are the organizations that were moved by themselves, Moving what is on its way: "acme to eu-2: closing".
	Pinned []string `json:"pinned,omitempty"`
	Moving []string `json:"moving,omitempty"`
	Away   string   `json:"away,omitempty"`
}

func (c cellsListCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if c.FromCluster != "" {
		return c.cluster(ctx, logger, io)
	}
	p, err := c.inCells(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	listed := make([]listedCell, len(p.names))
	var opening sync.WaitGroup
	for i, name := range p.names {
		opening.Go(func() {
			store, err := openMigrated(ctx, p.flags[name], logger)
			if err != nil {
				listed[i].Away = oneLine(err)
				return
			}
			defer store.Close()
			told, err := p.directory.Told(ctx, name, store.Conn(), time.Now())
			if err != nil {
				listed[i].Away = oneLine(err)
				return
			}
			for _, subject := range told.UnderWay() {
				at := told.Own(subject)
				listed[i].Moving = append(listed[i].Moving, fmt.Sprintf("%s to %s: %s", subject, at.To, at.State))
			}
		})
	}
	opening.Wait()
	for i, name := range p.names { // of what all have said
		placement := p.directory.Placement()
		slots := placement.Count(name)
		listed[i].Cell, listed[i].Slots = name, slots
		listed[i].Share = fmt.Sprintf("%.1f %%", 100*float64(slots)/cells.Slots)
		for _, subject := range placement.PinnedIn(name) {
			listed[i].Pinned = append(listed[i].Pinned, string(subject.Organization()))
		}
	}
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

// cluster prints a file of cells of a cluster's shards.
func (c cellsListCmd) cluster(ctx context.Context, logger *slog.Logger, io streams) error {
	if c.ClickhouseURL == "" || c.Cells != "" {
		return usageError{errors.New("--from-cluster needs --clickhouse-url, and no --cells")}
	}
	store, err := openStore(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	shards, err := cells.Shards(ctx, store.Conn(), c.FromCluster)
	if err != nil {
		return err
	}
	file, err := cells.FileOf(c.FromCluster, shards, c.ClickhouseURL)
	if err != nil {
		return err
	}
	_, err = io.out.Write(file)
	return err
}

func (c cellsListCmd) print(io streams, listed []listedCell) error {
	if c.JSON {
		return printObjects(io.out, listed, func(one listedCell) listedCell { return one })
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
	if err := table.Flush(); err != nil {
		return err
	}
	for _, one := range listed {
		for _, organization := range one.Pinned {
			fmt.Fprintf(io.out, "the organization %s is in %s by itself\n", organization, one.Cell)
		}
		for _, moving := range one.Moving {
			fmt.Fprintf(io.out, "a move has not ended, in %s: %s\n", one.Cell, moving)
		}
	}
	return nil
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
	// Only the cell itself knows for sure. If it is away, what the others say has to do.
	err = p.inCellOf(ctx, organization, reading, logger, func(*clickhouse.Server) error { return nil })
	if err != nil {
		logger.Warn("the cell could not be asked itself", "error", oneLine(err))
	}
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
