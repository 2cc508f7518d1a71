package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/runlens/runlens/olap/settle"
	"github.com/runlens/runlens/schema"
)

type settledCmd struct {
	Check   settledCheckCmd   `cmd:"" help:"Prove that the settled records are what their sources say."`
	Rebuild settledRebuildCmd `cmd:"" help:"Build the settled records anew."`
}

func (settledCmd) Help() string {
	return `The server copies records, versions and repeats collapsed, into tables that are quick to add up. No answer depends on how far that has come.`
}

type settledCheckCmd struct {
	storeFlags
	JSON bool `help:"Print the differences as JSON."`
}

func (settledCheckCmd) Help() string {
	return `Compares every settled record with its source, all columns, every projection with the rows that it adds up, and the names of initiators with their keys. Queries go on as they are. The exit code is 1 when something differs; queries that used it may have been wrong then. A running server repairs it by itself, within a round of its own check, and 'runlens settled rebuild' builds everything anew.

Example:
  runlens settled check`
}

var errSettledDiffer = errors.New("the rollup differs from its sources; a running server repairs it, and 'runlens settled rebuild' builds it anew")

func (c settledCheckCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	store, err := openMigrated(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	found, err := settle.Check(ctx, store.Conn())
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		if found == nil {
			found = []settle.Difference{}
		}
		if err := json.NewEncoder(io.out).Encode(found); err != nil {
			return err
		}
	case len(found) == 0:
		fmt.Fprintln(io.out, "all settled records are what their sources say")
	}
	if len(found) == 0 {
		return nil
	}
	if !c.JSON {
		for _, d := range found {
			switch {
			case d.Projection != "":
				fmt.Fprintf(io.out, "%s, organization %s, %s: the projection %s has %d records, the rows %d, or other sums\n", d.Table, d.Organization, d.Span, d.Projection, d.Settled, d.Records)
			case d.Table == schema.TableStarters:
				fmt.Fprintf(io.out, "%s, organization %s, %s: %d keys of initiators, of which %d have their name, or there are wrong names\n", d.Table, d.Organization, d.Span, d.Records, d.Settled)
			default:
				fmt.Fprintf(io.out, "%s, organization %s, %s: %d records in the source, %d settled, or with other contents\n", d.Table, d.Organization, d.Span, d.Records, d.Settled)
			}
		}
	}
	return errSettledDiffer
}

type settledRebuildCmd struct {
	storeFlags
}

func (settledRebuildCmd) Help() string {
	return `Empties the settled tables and settles everything again. Until that is done queries read the records themselves.

Example:
  runlens settled rebuild`
}

func (c settledRebuildCmd) Run(ctx context.Context, logger *slog.Logger) error {
	store, err := openMigrated(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := settle.Rebuild(ctx, store.Conn(), settle.Abandoned); err != nil {
		return err
	}
	return settle.New(store.Conn(), logger, settle.Margin).Settle(ctx)
}
