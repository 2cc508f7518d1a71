package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/orgs"
	"github.com/runlens/runlens/schema"
)

type initCmd struct {
	storeFlags
	databaseFlags
	formatFlags
	Files   []string `sep:"none" placeholder:"FILE" help:"@init_files"`
	Rejects string   `placeholder:"FILE" help:"@rejects"`
	Org     string   `placeholder:"ORG" help:"@init_org"`
	URL     string   `env:"RUNLENS_URL" nopassword:"the API takes a key" default:"http://127.0.0.1:8080" help:"@init_url"`
	Profile string   `env:"RUNLENS_PROFILE" default:"default" placeholder:"NAME" help:"The name to keep the key under."`
}

func (initCmd) Help() string {
	return `Copies records once, from a PostgreSQL database or from files, and shows the first number. On the way it writes
what is missing: the mapping of a database (mapping.sql), a key that 'runlens query' and 'runlens console' find, and
a dashboard. It overwrites nothing, so run it again at any time. Without --source and --files it asks.

Example:
  runlens init
  runlens init --source postgres://reader@db.internal/production
  runlens init --files 'export/*.ndjson.zst' --org acme`
}

func (c initCmd) Run(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, abandonStepAfter, func(ctx context.Context) error {
		return c.begin(ctx, explicitFlags(command), logger, io)
	})
}

func (c initCmd) begin(ctx context.Context, given map[string]bool, logger *slog.Logger, io streams) error {
	if err := c.choose(io); err != nil {
		return err
	}
	p, stores, leave, err := c.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	if c.Source != "" {
		err = c.copyDatabase(ctx, logger, io)
	} else {
		err = ingestCmd{storeFlags: c.storeFlags, formatFlags: c.formatFlags, Files: c.Files, Rejects: c.Rejects,
			OnError: "continue"}.Run(ctx, logger, io)
	}
	rejected := codeOf(err) == exitRejected
	if err != nil && !rejected {
		return err
	}
	one, err := c.organization(ctx, p, stores)
	if err == nil {
		err = c.complete(ctx, one, logger, io)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "\n%s has %d runs", one.ID, one.Runs)
	if one.LastRun != nil {
		fmt.Fprintf(io.out, ", the latest of %s", instant(*one.LastRun))
	}
	store := c.storeArguments(given)
	fmt.Fprintf(io.out, ".\n\nNext, each in a terminal of its own:\n  %s serve%s\n", self, store)
	if c.Source != "" {
		fmt.Fprintf(io.out, "  %s worker%s --mapping %s   # copies what changes; set RUNLENS_SOURCE there\n",
			self, store, output.Quoted(c.Mapping))
	}
	console := "  " + self + " console"
	if given["profile"] {
		console += " --profile " + c.Profile
	}
	fmt.Fprintln(io.out, console)
	if rejected {
		return exitError{exitRejected}
	}
	return nil
}

// checkHome fails before anything is copied where a key could not be kept afterwards.
func (c initCmd) checkHome() error {
	home, err := profile.Home()
	if err == nil {
		if _, known, kept := home.Profile(c.Profile); kept != nil || !known {
			err = cmp.Or(kept, home.Make())
		}
	}
	if err != nil {
		return usageError{fmt.Errorf("the key needs a place: %w", err)}
	}
	return nil
}

// choose checks the profile, and asks for the source, where neither flags nor variables name one.
func (c *initCmd) choose(io streams) error {
	if err := profile.CheckName(c.Profile); err != nil {
		return usageError{fmt.Errorf("--profile: %w", err)}
	}
	server, err := client.New(client.Config{URL: c.URL, Key: "none"})
	if err != nil {
		return usageError{fmt.Errorf("--url: %w", err)}
	}
	c.URL = server.URL()
	if c.Source != "" && len(c.Files) > 0 {
		return usageError{errors.New("--source and --files exclude each other")}
	}
	for c.Source == "" && len(c.Files) == 0 {
		answer, ok := asked(io, "Where are the records? A database (postgres://…), or files (export/*.ndjson): ")
		switch {
		case !ok:
			return usageError{errors.New("a source is needed: --source postgres://user@host:5432/database, or --files FILE")}
		case strings.HasPrefix(answer, "postgres://") || strings.HasPrefix(answer, "postgresql://"):
			c.Source = answer
		case answer != "":
			c.Files = []string{answer}
		}
	}
	if c.Source != "" {
		c.Mapping = cmp.Or(c.Mapping, "mapping.sql")
	}
	if err := refuseInputs("--rejects", c.Rejects, nil, c.Mapping); err != nil {
		return err
	}
	return c.checkHome()
}

// copyDatabase copies everything once, as a worker begins.
func (c *initCmd) copyDatabase(ctx context.Context, logger *slog.Logger, io streams) error {
	made, err := createFile(c.Mapping, postgres.DefaultMapping)
	if err != nil {
		return usageError{fmt.Errorf("--mapping: %w", err)}
	}
	if made {
		fmt.Fprintf(io.out, "wrote %s: a SELECT for each kind of records\n", c.Mapping)
	}
	database, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer database.Close()
	if err := database.Check(ctx); err != nil {
		if postgres.NotConnected(err) { // its tables are not known
			return err
		}
		return fmt.Errorf("%w; if your tables are others, change the SELECTs in %s and run 'runlens init' again",
			err, c.Mapping)
	}
	p, err := c.place(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	rejects, err := appendRejects(c.Rejects, io.err)
	if err != nil {
		return usageError{err}
	}
	shared := &sharedRejects{rejects: rejects}
	err = errors.Join(c.copyTo(ctx, p, database, shared, logger, io), rejects.Close())
	if err == nil && shared.count > 0 {
		return exitError{exitRejected}
	}
	return err
}

// organization is the one of --org, or the only one.
func (c initCmd) organization(
	ctx context.Context, p *placed, stores []*clickhouse.Server,
) (orgs.Organization, error) {
	all, err := p.organizations(ctx, stores)
	if err != nil {
		return orgs.Organization{}, err
	}
	names := ""
	for _, one := range all {
		if string(one.ID) == c.Org || c.Org == "" && len(all) == 1 {
			return one, nil
		}
		names += " " + string(one.ID)
	}
	if names == "" {
		return orgs.Organization{}, errors.New("there was nothing to copy")
	}
	return orgs.Organization{}, usageError{fmt.Errorf("name an organization with --org; the store has%s", names)}
}

// complete writes the key and the dashboard, if they are not there.
func (c initCmd) complete(ctx context.Context, one orgs.Organization, logger *slog.Logger, io streams) error {
	home, err := profile.Home()
	if err != nil {
		return err
	}
	if _, known, err := home.Profile(c.Profile); err != nil {
		return usageError{err}
	} else if known {
		fmt.Fprintf(io.out, "the key of the profile %s stays as it is; 'runlens logout --profile %[1]s' forgets it\n",
			c.Profile)
	} else if err := c.keep(ctx, home, one.ID, logger, io); err != nil {
		return err
	}
	file := filepath.Join(string(home), "dashboards", "overview.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	made, err := createFile(file, firstDashboard)
	if made {
		fmt.Fprintf(io.out, "wrote %s: the dashboard of 'runlens console'\n", file)
	}
	return err
}

// keep makes a key and keeps it where query and console find it.
func (c initCmd) keep(
	ctx context.Context, home profile.Folder, organization schema.OrganizationID, logger *slog.Logger, io streams,
) error {
	text, key := newKey(schema.APIKey{OrganizationID: organization, Name: "init", CreatedAt: time.Now().UTC(),
		Scopes: []string{auth.ScopeAnalyticsRead}})
	err := c.withKeysOf(ctx, organization, changing, logger, func(store keys.Store, conn driver.Conn) error {
		return audit.Do(ctx, conn, actionOn("keys create", key), func(ctx context.Context) error {
			return store.Put(ctx, key)
		})
	})
	if err != nil {
		return err
	}
	path, err := home.Keep(c.Profile, profile.Profile{URL: c.URL, Key: text})
	if err != nil {
		return fmt.Errorf("the key %s is kept nowhere; 'runlens keys revoke %[1]s' ends it: %w", key.KeyID, err)
	}
	fmt.Fprintf(io.out, "made a key for %s; it is in %s\n", organization, path)
	return nil
}

// createFile writes a file unless there is one, and reports whether it did.
func createFile(name, content string) (bool, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = file.WriteString(content)
	return true, errors.Join(err, file.Close())
}

// firstDashboard is what init writes.
const firstDashboard = `# Written by 'runlens init'. Change it as you like; the console reads it again each time.
title: Overview
last: 30d
panels:
  - title: Runs and failures
    question: {metrics: [run_count, failed_run_count], dimensions: [day], compare: previous, weekdays: true}
  - title: The busiest agents
    top: 5
    question: {metrics: [run_count], dimensions: [agent_id, day]}
  - title: Success by agent
    question: {metrics: [run_success_rate], dimensions: [agent_id]}
  - title: People by week
    chart: bar
    question: {metrics: [unique_initiator_count], grain: week}
`
