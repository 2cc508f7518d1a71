package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

type rollupCmd struct {
	Check   rollupCheckCmd   `cmd:"" help:"Prove that the rollup equals its base tables."`
	Rebuild rollupRebuildCmd `cmd:"" help:"Build the rollup again."`
}

func (rollupCmd) Help() string {
	return `The rollup has the current row of every record, so that sums need not collapse versions. Servers refresh it.
Queries compute what it lacks: no answer depends on how recent it is.

Example:
  runlens rollup check`
}

type rollupCheckCmd struct {
	storeFlags
	JSON bool `help:"Print the differences as JSON."`
}

func (rollupCheckCmd) Help() string {
	return `Compares every record in the rollup with its base table, every projection with its rows, and the names of
initiators with their keys. Queries go on meanwhile.
The exit code is 1 if something differs, or if there is nothing to compare; of several cells those without records are
left out. Answers that used what differs may have been wrong. A running server repairs it within a round of its own
check; 'runlens rollup rebuild' builds everything again.

Example:
  runlens rollup check
  runlens rollup check --json`
}

var errRollupDiffers = errors.New("the rollup differs from its base tables: " +
	"a running server repairs it, and 'runlens rollup rebuild' builds it again")

func (c rollupCheckCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	compared := 0
	err := c.eachStore(ctx, logger, io, func(_ storeFlags, store *clickhouse.Server) error {
		err := c.check(ctx, store, logger, io)
		if errors.Is(err, rollup.ErrNoRecords) && c.Cells != "" {
			say(io.err, "%v", err)
			return nil
		}
		compared++
		return err
	})
	if compared == 0 {
		return cmp.Or(err, rollup.ErrNoRecords)
	}
	return err
}

func (c rollupCheckCmd) check(
	ctx context.Context, store *clickhouse.Server, logger *slog.Logger, io streams,
) error {
	progress := newProgress(io.err, "rollup check", noBytes, logger)
	found, err := rollup.CheckWith(ctx, store.Conn(), func(records uint64) { progress.show(0, "compared", records) })
	progress.end()
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		if found == nil {
			found = []rollup.Difference{}
		}
		if err := json.NewEncoder(io.out).Encode(found); err != nil {
			return err
		}
	case len(found) == 0:
		fmt.Fprintln(io.out, "the rollup equals its base tables")
	}
	if len(found) == 0 {
		return nil
	}
	if !c.JSON {
		for _, d := range found {
			switch {
			case d.Projection != "":
				fmt.Fprintf(io.out, "%s, organization %s, %s: the projection %s has %d records, the rows %d, or other sums\n",
					d.Table, d.Organization, d.Span, d.Projection, d.InRollup, d.Records)
			case d.Table == schema.TableConflicts:
				fmt.Fprintf(io.out, "organization %s: %d attribution records count under none of their clocks: run 'runlens "+
					"rollup rebuild'\n", d.Organization, d.Records)
			case d.Table == schema.TableInitiatorKeys:
				fmt.Fprintf(io.out,
					"%s, organization %s, %s: %d keys of initiators, of which %d have their name, or there are wrong names\n",
					d.Table, d.Organization, d.Span, d.Records, d.InRollup)
			default:
				fmt.Fprintf(io.out, "%s, organization %s, %s: %d records in the source, %d refreshed, or with other contents\n",
					d.Table, d.Organization, d.Span, d.Records, d.InRollup)
			}
		}
	}
	return errRollupDiffers
}

type rollupRebuildCmd struct {
	storeFlags
}

func (rollupRebuildCmd) Help() string {
	return `Empties the rollup and refreshes everything. Until that is done queries read the base tables.
After a restore it also takes out who was purged, and counts what was stored.

Example:
  runlens rollup rebuild`
}

func (c rollupRebuildCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return c.eachStore(ctx, logger, io, func(_ storeFlags, store *clickhouse.Server) error {
		defer remind(logger, "the rebuild")()
		return derive(ctx, store.Conn(), logger)
	})
}

// derive derives all that is derived from the records, and takes out of them who was purged. It does not rely on what
// is there: a server that ran while records came with their stamps has refreshed the rollup past them.
func derive(ctx context.Context, conn driver.Conn, logger *slog.Logger) error {
	if err := rollup.Rebuild(ctx, conn); err != nil {
		return err
	}
	if err := rollup.Count(ctx, conn); err != nil {
		return err
	}
	refresher := rollup.New(conn, logger, rollup.Margin)
	refresher.TakeOutLate(takeOutLate(conn))
	return refresher.Refresh(ctx)
}
