package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/source/postgrestest"
)

// mostOfPostgres is the greatest ratio of our median to PostgreSQL's.
const mostOfPostgres = 0.02

// The table as an operational database would have it. The index holds all that the question needs, so that after a
// vacuum the heap need not be read; each connection may sort and hash in memory.
const (
	createPostgresRuns = `CREATE TABLE runs (
		organization_id text NOT NULL, run_id uuid NOT NULL, created_at timestamptz NOT NULL, agent_id uuid NOT NULL,
		kind text NOT NULL, status text NOT NULL, initiator_identifier text, initiator_name text, initiator_type text,
		updated_at timestamptz NOT NULL)`
	indexPostgresRuns = `ALTER TABLE runs ADD PRIMARY KEY (organization_id, run_id);
		CREATE INDEX ON runs (organization_id, created_at) INCLUDE (kind, status)`
	vacuumPostgresRuns = "VACUUM (ANALYZE) runs"
	tunePostgres       = "SET work_mem = '256MB'"

	postgresByDay = `SELECT to_char(created_at AT TIME ZONE $4, 'YYYY-MM-DD') AS day, count(*),
		count(*) FILTER (WHERE status = 'COMPLETED'), count(*) FILTER (WHERE status = 'FAILED'), count(*)
			FILTER (WHERE status = 'CANCELLED'),
		count(*) FILTER (WHERE status IN ` + activeStatuses + `)
		FROM runs
		WHERE organization_id = $1 AND kind = 'agent'
			AND created_at >= ($2::text::timestamp AT TIME ZONE $4) AND created_at < ($3::text::timestamp AT TIME ZONE $4)
		GROUP BY day ORDER BY day`
)

var postgresColumns = []string{"organization_id", "run_id", "created_at", "agent_id", "kind", "status",
	"initiator_identifier", "initiator_name", "initiator_type", "updated_at"}

// measurePostgres queries the medium organization's days from us and from PostgreSQL, with the same rows.
func (b *bench) measurePostgres(ctx context.Context) error {
	server, err := postgrestest.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	began := time.Now()
	copied, err := b.copyToPostgres(ctx, conn)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	b.say("loaded %d rows into PostgreSQL in %s", copied, time.Since(began).Round(time.Second))

	q := question{"additive, by day", runsModel, additive, []string{"day"}, "", yearDays, fullPage, mostOfPostgres}
	a := b.inquiry(q, b.world.medium.first())
	w := b.world.lastDays(q.days)
	postgres := func(ctx context.Context) (err error) {
		rows, err := conn.Query(ctx, postgresByDay, string(a.organization), w.start, w.behindEnd, zone)
		if err != nil {
			return err
		}
		a.reference, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
			var day string
			var n [5]int64
			if err := row.Scan(&day, &n[0], &n[1], &n[2], &n[3], &n[4]); err != nil {
				return nil, err
			}
			cells := []string{fmt.Sprintf("%q", day)}
			for _, count := range n {
				cells = append(cells, numberCell(float64(count)))
			}
			return cells, nil
		})
		return err
	}
	measured, err := b.compare(ctx, a.api, postgres)
	if err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return err
	}
	r := ratio("postgres", fmt.Sprintf("%s, %d runs", q.title(), b.world.medium.size), "PostgreSQL", measured[0],
		measured[1], mostOfPostgres)
	b.report.add(r)
	return nil
}

// copyToPostgres copies the medium organization's runs, versions collapsed, as an operational database has them.
func (b *bench) copyToPostgres(ctx context.Context, conn *pgx.Conn) (int64, error) {
	if _, err := conn.Exec(ctx, tunePostgres); err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, createPostgresRuns); err != nil {
		return 0, err
	}
	rows, err := b.store.Conn().
		Query(ctx, "SELECT CAST(organization_id, 'String'), run_id, created_at, agent_id, CAST(kind, 'String'), "+
			"CAST(status, 'String'),"+
			" initiator_identifier, initiator_name, CAST(initiator_type, 'Nullable(String)'), updated_at"+
			" FROM naive_runs FINAL WHERE organization_id = '"+string(b.world.medium.first())+"'")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{"runs"}, postgresColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if !rows.Next() {
			return nil, rows.Err()
		}
		var organization, kind, status string
		var run, agent uuid.UUID
		var created, updated time.Time
		var identifier, name, initiatorType *string
		err := rows.Scan(&organization, &run, &created, &agent, &kind, &status, &identifier, &name, &initiatorType, &updated)
		return []any{
			organization,
			[16]byte(run),
			created,
			[16]byte(agent),
			kind,
			status,
			identifier,
			name,
			initiatorType,
			updated,
		}, err
	}))
	if err != nil {
		return 0, err
	}
	for _, statement := range []string{indexPostgresRuns, vacuumPostgresRuns} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	return copied, nil
}
