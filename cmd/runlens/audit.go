package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"text/tabwriter"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/schema"
)

type auditCmd struct {
	storeFlags
	Org    string `placeholder:"ORG" help:"Only what concerns this organization."`
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (auditCmd) Help() string {
	return `Shows who created, rotated and revoked keys and who purged records, oldest first.
An action has one entry when it begins and one when it has ended.

Example:
  runlens audit --org acme`
}

// An auditLine is an entry as audit prints it as JSON, one object a line.
type auditLine struct {
	At             string          `json:"at"`
	ActionID       string          `json:"action_id"`
	Outcome        string          `json:"outcome"`
	Action         string          `json:"action"`
	OrganizationID string          `json:"organization_id"`
	KeyID          string          `json:"key_id"`
	Actor          string          `json:"actor"`
	Details        json.RawMessage `json:"details"`
}

func (c auditCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	var organization schema.OrganizationID
	if c.Org != "" {
		var err error
		if organization, err = schema.ParseOrganizationID(c.Org); err != nil {
			return usageError{fmt.Errorf("--org %w", err)}
		}
	}
	_, stores, leave, err := c.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	var entries []audit.Entry
	for _, store := range stores {
		listed, err := audit.List(ctx, store.Conn(), organization)
		if err != nil {
			return err
		}
		entries = append(entries, listed...)
	}
	slices.SortStableFunc(entries, func(a, b audit.Entry) int { return a.At.Compare(b.At) })
	if c.Output == "json" {
		return printObjects(io.out, entries, func(e audit.Entry) auditLine {
			return auditLine{
				At: instant(e.At), ActionID: e.ActionID.String(), Outcome: e.Outcome, Action: e.Action,
				OrganizationID: string(e.OrganizationID), KeyID: e.KeyID, Actor: e.Actor, Details: json.RawMessage(e.Details),
			}
		})
	}
	table := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT\tACTION\tOUTCOME\tORGANIZATION\tKEY ID\tACTOR\tDETAILS")
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			instant(e.At), e.Action, e.Outcome, e.OrganizationID, e.KeyID, output.Printable(e.Actor),
			output.Printable(e.Details))
	}
	return table.Flush()
}
