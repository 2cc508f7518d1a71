package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/schema"
)

type purgeCmd struct {
	storeFlags
	Org    string `required:"" placeholder:"ORG" help:"The organization."`
	Person string `placeholder:"IDENTIFIER" help:"Email address or phone number: purge this person only."`
	DryRun bool   `help:"Only count what would be purged."`
	Yes    bool   `help:"Do it. Without it nothing is changed."`
	JSON   bool   `help:"Print the counts as JSON."`
}

func (purgeCmd) Help() string {
	return `Takes all records and API keys of an organization out of the store, from every table, part and projection. It cannot be taken back.
With --person, the attribution records of the identifier are deleted and the runs that it started lose the initiator's identifier and name, so that run counts stay what they were.
Purge the source first: a worker or a later ingest copies what is still there.

Example:
  runlens purge --org acme --person ada@example.com --dry-run
  runlens purge --org acme --person ada@example.com --yes`
}

func (c purgeCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("--org %w", err)}
	}
	if c.Yes == c.DryRun {
		return usageError{errors.New("say either --dry-run, to count, or --yes, to purge")}
	}
	store, err := openMigrated(ctx, c.storeFlags, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	steps, of := purge.Organization(organization), "organization"
	if c.Person != "" {
		steps, of = purge.Person(organization, c.Person), "person"
	}
	for i := range steps {
		if err := steps[i].Count(ctx, store.Conn()); err != nil {
			return err
		}
	}
	if c.Yes {
		// Not the person's identifier: a log outlives a purge.
		action := audit.Action{Name: "purge", OrganizationID: organization, Details: map[string]any{"of": of}}
		err := audit.Do(ctx, store.Conn(), action, func(ctx context.Context) error {
			return purge.Run(ctx, store.Conn(), steps, func(s purge.Step) {
				logger.Info("purged", "organization", organization, "table", s.Table, "what", s.What, "rows", s.Rows)
			})
		})
		if err != nil {
			return err
		}
	}
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
