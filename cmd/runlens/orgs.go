package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/orgs"
	"github.com/runlens/runlens/schema"
)

type orgsCmd struct {
	List orgsListCmd `cmd:"" help:"Show the organizations that the store has agents, runs or keys of."`
}

func (orgsCmd) Help() string {
	return `Example:
  runlens orgs list`
}

type orgsListCmd struct {
	storeFlags
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (orgsListCmd) Help() string {
	return `Counts agents, runs and valid keys of each organization. It reads all runs, which takes seconds for millions.

Example:
  runlens orgs list
  runlens orgs list --output json | jq -r .organization_id`
}

// A listedOrganization is one as orgs list prints it as JSON, one object a line.
type listedOrganization struct {
	OrganizationID string  `json:"organization_id"`
	Agents         uint64  `json:"agents"`
	Runs           uint64  `json:"runs"`
	LastRunAt      *string `json:"last_run_at"`
	Keys           uint64  `json:"keys"` // valid ones
}

func (c orgsListCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	p, stores, leave, err := c.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	all, err := p.organizations(ctx, stores)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b orgs.Organization) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if c.Output == "json" {
		return printObjects(io.out, all, func(o orgs.Organization) listedOrganization {
			return listedOrganization{string(o.ID), o.Agents, o.Runs, optionalInstant(o.LastRun), o.Keys}
		})
	}
	return printOrganizations(io.out, all)
}

// organizations are those of all stores, store by store; one that is being moved is in one of them.
func (p *placed) organizations(
	ctx context.Context, stores []*clickhouse.Server,
) (all []orgs.Organization, err error) {
	for i, store := range stores {
		here, err := p.directory.Here(ctx, p.names[i], store.Conn(), time.Now())
		if err != nil {
			return nil, err
		}
		listed, err := orgs.List(ctx, store.Conn())
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(listed, func(o orgs.Organization) bool { return !here(o.ID) })...)
	}
	return all, nil
}

func printOrganizations(out io.Writer, all []orgs.Organization) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "The store is empty: 'runlens ingest' or 'runlens worker' copies records into it.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ORGANIZATION\tAGENTS\tRUNS\tLAST RUN\tKEYS")
	for _, one := range all {
		last := "-"
		if one.LastRun != nil {
			last = instant(*one.LastRun)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\n", one.ID, one.Agents, one.Runs, last, one.Keys)
	}
	return table.Flush()
}

// noteNoRuns says on standard error where a new key has nothing to read, as after a mistyped name.
func noteNoRuns(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, stderr io.Writer) {
	if has, err := orgs.HasRuns(ctx, conn, organization); err == nil && !has {
		say(stderr, "note: the store has no runs of %s yet; 'runlens orgs list' shows which organizations it has",
			organization)
	}
}
