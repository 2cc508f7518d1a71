package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

// takeOutLate purges people again who were purged before, for what was stored since (rollup.Refresher.TakeOutLate).
func takeOutLate(conn driver.Conn) func(context.Context, schema.OrganizationID, string, time.Time) error {
	return func(ctx context.Context, organization schema.OrganizationID, identifier string, until time.Time) error {
		return purge.Late(organization, identifier, until).Run(ctx, conn, func(purge.Step) {})
	}
}

// What the audit log says of purges.
const (
	actionPurge = "purge"
	actionLift  = "purge --lift"
	ofPerson    = "person"
)

type purgeCmd struct {
	storeFlags
	Org    []string `required:"" sep:"none" placeholder:"ORG" help:"The organization; repeat the flag for several."`
	Person string   `placeholder:"IDENTIFIER" help:"Email address or phone number: purge this person only."`
	DryRun bool     `help:"Only count what a purge would remove."`
	Yes    bool     `help:"Purge. Without it nothing is changed."`
	Lift   bool     `help:"Let a purged person's records in again, whenever they happened."`
	JSON   bool     `help:"Print the counts as JSON."`
}

func (purgeCmd) Help() string {
	return `Removes all records and API keys of an organization from every table, part and projection, for good.
With --person it deletes the attribution records of the identifier. Runs that the person started lose the
initiator's identifier and name, so run counts stay the same.
What the person did until the purge stays out from then on, whatever a worker, an ingest or a comparison still
reads; ingest rejects it. What the person does later counts. --lift ends that.
Purge the source before you purge an organization: a worker or a later ingest copies what is still there.
ClickHouse writes every part again that has rows of an organization. So several at once cost little more than one.

Example:
  runlens purge --org acme --person ada@example.com --dry-run
  runlens purge --org acme --person ada@example.com --yes
  runlens purge --org acme --person ada@example.com --lift
  runlens purge --org acme --org globex --yes`
}

func (c purgeCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organizations, err := c.organizations()
	if err != nil {
		return err
	}
	if c.Lift && (c.Person == "" || c.DryRun) {
		return usageError{errors.New("--lift needs --person, and does not go with --dry-run")}
	}
	if !c.Lift && c.Yes == c.DryRun {
		return usageError{errors.New("say either --dry-run, to count, or --yes, to purge")}
	}
	placed, err := c.place(ctx, logger)
	if err != nil {
		return err
	}
	defer placed.Close()
	return c.inCells(ctx, placed, organizations, logger, io)
}

// purge purges organizations, or a person of one, that are in one store.
func (c purgeCmd) purge(
	ctx context.Context, store *clickhouse.Server, organizations []schema.OrganizationID, logger *slog.Logger, io streams,
) error {
	if c.Lift {
		return c.lift(ctx, store.Conn(), organizations[0], io)
	}
	p, of := purge.Organization(organizations...), "organization"
	if c.Person != "" {
		p, of = purge.Person(organizations[0], c.Person), ofPerson
	}
	if err := p.Count(ctx, store.Conn()); err != nil {
		return err
	}
	if c.Yes {
		do := func(ctx context.Context) error {
			defer remind(logger, "the purge")()
			return p.Run(ctx, store.Conn(), func(s purge.Step) {
				logger.Info("purged", "organizations", organizations, "table", s.Table, "what", s.What, "rows", s.Rows)
			})
		}
		for _, organization := range organizations {
			// Not the person's identifier: a log outlives a purge.
			action := audit.Action{Name: actionPurge, OrganizationID: organization, Details: map[string]any{"of": of}}
			work := do
			do = func(ctx context.Context) error { return audit.Do(ctx, store.Conn(), action, work) }
		}
		err := do(ctx)
		if err != nil {
			return err
		}
	}
	if err := c.print(p.Summary(), io); err != nil || c.DryRun {
		return err
	}
	return nothingLeft(ctx, p, store, logger)
}

// nothingLeft removes what a backup that was killed may have left in the data directory. The error says that something
// is left that a purge can't change.
func nothingLeft(ctx context.Context, p *purge.Purge, store *clickhouse.Server, logger *slog.Logger) error {
	if err := store.ClearBackups(); err != nil {
		return err
	}
	return nothingAside(ctx, p, store.Conn(), logger)
}

// print prints what the steps changed, or would change.
func (c purgeCmd) print(steps []purge.Step, io streams) error {
	if c.JSON {
		return json.NewEncoder(io.out).Encode(steps)
	}
	for _, s := range steps {
		if c.DryRun {
			fmt.Fprintf(io.out, "%s: %d rows would be %s\n", s.Table, s.Rows, s.What)
		} else {
			fmt.Fprintf(io.out, "%s: %d rows %s\n", s.Table, s.Rows, s.What)
		}
	}
	return nil
}

// nothingAside is an error where ClickHouse has put parts aside that a purge could not change.
func nothingAside(ctx context.Context, p *purge.Purge, conn driver.Conn, logger *slog.Logger) error {
	tables, err := p.Aside(ctx, conn)
	if err != nil { // the user of a server may lack the right
		logger.Warn("it is not known whether ClickHouse has put damaged parts aside, which may have what was purged",
			"error", oneLine(err))
		return nil
	}
	if len(tables) == 0 {
		return nil
	}
	return fmt.Errorf("purged, but ClickHouse has put parts of %s aside, damaged or detached, which may have what was "+
		"purged: drop them, each by ALTER TABLE … DROP DETACHED PART 'NAME' SETTINGS allow_drop_detached = 1, with the "+
		"names of system.detached_parts, and run this again", strings.Join(tables, " and "))
}

// organizations are those to purge, each once.
func (c purgeCmd) organizations() ([]schema.OrganizationID, error) {
	var organizations []schema.OrganizationID
	for _, text := range c.Org {
		organization, err := schema.ParseOrganizationID(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--org %w", err)}
		}
		organizations = append(organizations, organization)
	}
	slices.Sort(organizations)
	organizations = slices.Compact(organizations)
	if c.Person != "" && len(organizations) > 1 {
		return nil, usageError{errors.New("--person goes with one --org")}
	}
	return organizations, nil
}

// lift takes the person off the list of those whose records stay out.
func (c purgeCmd) lift(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, io streams) error {
	action := audit.Action{Name: actionLift, OrganizationID: organization, Details: map[string]any{"of": ofPerson}}
	err := audit.Do(ctx, conn, action, func(ctx context.Context) error {
		return purged.Lift(ctx, conn, purged.Person{Organization: organization, Identifier: c.Person})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, "lifted; a worker copies the person's records again at its next full comparison, "+
		"files are to be ingested again")
	return err
}
