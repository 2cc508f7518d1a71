package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

const (
	// purgedPerson is purged while rows change; only rows from before name the person.
	purgedPerson = "purged@example.com"
	westZone     = "America/New_York"
	// replayDelay is how long the standby waits before it replays a commit.
	replayDelay = 4 * time.Second
)

// sources are the databases that are copied, and what copies them.
type sources struct {
	*soak
	primary, standby *postgrestest.Server
	westURL          string
	main, late, west *sourceCopy
	copies           []*sourceCopy

	changes counts   // statements that changed rows, by outcome
	told    examples // lags that were told too small
	markers counts
	unready counts // by source, readings of a worker that was not ready once it had been
}

// sourceRole is who the workers are: with time-outs that some of their statements run into.
const sourceRole = `CREATE ROLE reader LOGIN; GRANT pg_read_all_stats TO reader;
ALTER ROLE reader SET lock_timeout = '100ms'; ALTER ROLE reader SET statement_timeout = '2s'`

// mainTables have rows that are hidden and rows without a time. Agents have no index on their clock.
const mainTables = `ALTER TABLE runs ADD hidden boolean NOT NULL DEFAULT false, ALTER updated_at DROP NOT NULL;
ALTER TABLE attributions ALTER updated_at DROP NOT NULL;
DROP INDEX agents_changes`

// westTables do not say what their times mean, and no index has the mapping's clock of runs.
const westTables = `ALTER TABLE runs ALTER created_at TYPE timestamp, ALTER updated_at TYPE timestamp`

// fillTables makes %[1]d runs of 90 days, of which some have no instant as updated_at where %[2]t.
const fillTables = `SET session_replication_role = replica;
INSERT INTO agents SELECT 'org' || g %% 3, lpad(to_hex(g), 32, '0')::uuid, 'Agent ' || g
	FROM generate_series(1, 2000) g;
INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier, created_at, updated_at)
	SELECT 'org' || g %% 3, gen_random_uuid(), lpad(to_hex(g %% 2000 + 1), 32, '0')::uuid, 'RUNNING',
		CASE WHEN g %% 50 = 0 THEN '` + purgedPerson + `' ELSE 'p' || g %% 500 || '@example.com' END,
		now() - (g %% 90) * interval '1 day',
		CASE WHEN NOT %[2]t THEN now() - interval '1 day' WHEN g %% 400 = 7 THEN NULL WHEN g %% 400 = 15 THEN 'infinity'
			WHEN g %% 400 = 23 THEN '-infinity' ELSE now() - interval '1 day' + g * interval '1 microsecond' END
	FROM generate_series(1, %[1]d) g;
INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type,
	run_initiation_type, source, occurred_at, updated_at)
	SELECT organization_id, gen_random_uuid(), run_id, agent_id, initiator_identifier, 'initiated', 'human', 'web',
		created_at, updated_at FROM runs LIMIT %[1]d / 6;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
ANALYZE`

func (b *sources) startServers(ctx context.Context) (err error) {
	starting, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	if b.primary, err = postgrestest.Start(starting); err != nil {
		return err
	}
	b.westURL = withDatabase(b.primary.URL(), "west")
	b.say("fills the databases with %d runs", b.SourceRuns)
	west := b.SourceRuns / westShare
	for _, step := range []struct{ url, sql string }{
		{b.primary.URL(), sourceRole},
		{b.primary.URL(), postgres.Layout},
		{b.primary.URL(), mainTables},
		{b.primary.URL(), fmt.Sprintf(fillTables, b.SourceRuns, true)},
		{b.primary.URL(), "CREATE DATABASE west"},
		{b.primary.URL(), "ALTER DATABASE west SET TimeZone = '" + westZone + "'"},
		{b.westURL, postgres.Layout},
		{b.westURL, westTables},
		{b.westURL, fmt.Sprintf(fillTables, west, false)},
	} {
		if err := onSource(ctx, step.url, step.sql); err != nil {
			return fmt.Errorf("fill the databases: %w", err)
		}
	}
	copying, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	if b.standby, err = b.primary.Standby(copying); err != nil {
		return err
	}
	return b.eachDatabase(func(name, url string) error {
		if name == "standby" {
			delay := fmt.Sprintf("ALTER SYSTEM SET recovery_min_apply_delay = '%s'", replayDelay)
			if err := errors.Join(onSource(ctx, url, delay), onSource(ctx, url, "SELECT pg_reload_conf()")); err != nil {
				return err
			}
		}
		return onSource(ctx, url, "SELECT pg_stat_reset()") // filling a database makes temporary files
	})
}

// eachDatabase calls visit with the databases that are read.
func (b *sources) eachDatabase(visit func(name, url string) error) error {
	return errors.Join(visit("primary", b.primary.URL()), visit("standby", b.standby.URL()),
		visit("west of UTC", b.westURL))
}

func (b *sources) close() {
	for _, c := range b.copies {
		c.close()
	}
	for _, server := range []*postgrestest.Server{b.standby, b.primary} {
		if server == nil {
			continue
		}
		if err := server.Stop(); err != nil {
			b.say("PostgreSQL: %v", err)
		}
	}
}

// withDatabase is the address of another database of a server.
func withDatabase(address, database string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // connecting to it says what is wrong
	}
	u.Path = "/" + database
	return u.String()
}

// asReader is an address for the role of the workers.
func asReader(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = url.User("reader")
	return u.String()
}

// replaceLine replaces a line that is there.
func replaceLine(text, line, with string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if lines[i] == line {
			lines[i] = with
		}
	}
	return strings.Join(lines, "\n")
}

// onSource runs statements on a connection of its own, in one transaction.
func onSource(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// numberOnSource runs a query of one number.
func numberOnSource(ctx context.Context, url, sql string) (n float64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, sql).Scan(&n)
	return n, err
}
