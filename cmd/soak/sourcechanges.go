package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/schema"
)

// changeSource changes rows of the organization %[1]s that follow the id %[2]s: some are new, some have another status,
// and some go.
const changeSource = `
INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier)
	SELECT '%[1]s', gen_random_uuid(), gen_random_uuid(), 'RUNNING', 'p' || g || '@example.com'
	FROM generate_series(1, 20) g;
INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type,
	run_initiation_type, source, occurred_at)
	SELECT organization_id, gen_random_uuid(), run_id, agent_id, initiator_identifier, 'initiated', 'human', 'web',
		created_at
	FROM runs WHERE organization_id = '%[1]s' AND run_id >= '%[2]s' ORDER BY run_id LIMIT 10;
UPDATE runs SET status = 'COMPLETED' WHERE organization_id = '%[1]s' AND run_id IN (SELECT run_id FROM runs
	WHERE organization_id = '%[1]s' AND run_id >= '%[2]s' AND isfinite(updated_at) ORDER BY run_id LIMIT 20);
DELETE FROM runs WHERE organization_id = '%[1]s' AND run_id IN (SELECT run_id FROM runs
	WHERE organization_id = '%[1]s' AND run_id >= '%[2]s' ORDER BY run_id DESC LIMIT 2);
UPDATE agents SET name = 'Agent of ' || now() WHERE organization_id = '%[1]s' AND agent_id IN (SELECT agent_id
	FROM agents WHERE organization_id = '%[1]s' ORDER BY random() LIMIT 1)`

// hideSource hides rows without changing what the mapping shows of them.
const hideSource = `;
UPDATE runs SET hidden = true WHERE organization_id = '%[1]s' AND run_id IN (SELECT run_id FROM runs
	WHERE organization_id = '%[1]s' AND run_id > '%[2]s' AND isfinite(updated_at) ORDER BY run_id LIMIT 2)`

// changeRows changes rows all the while.
func (b *sources) changeRows(ctx, end context.Context, url string, hides bool) error {
	statement := changeSource
	if hides {
		statement += hideSource
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for n := 0; harness.Pause(end, 100*time.Millisecond); n++ {
		_, err := conn.Exec(ctx, fmt.Sprintf(statement, fmt.Sprintf("org%d", n%3), uuid.New()))
		if err := b.changed("changes", err); err != nil {
			return err
		}
	}
	return nil
}

// changed counts what became of a statement. Deadlocks and locks that are not given belong to such a source.
func (b *sources) changed(what string, err error) error {
	var failed *pgconn.PgError
	if errors.As(err, &failed) && (failed.Code == "40P01" || failed.Code == "55P03") {
		b.changes.add(what + " refused")
		return nil
	}
	if err == nil {
		b.changes.add(what)
	}
	return err
}

// prepareTransactions has at least one prepared transaction in flight all the while; each takes twice the time that
// passes reach back, and more.
func (b *sources) prepareTransactions(ctx, end context.Context) error {
	const insert = `BEGIN; INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier,
		activity_type, run_initiation_type, source) VALUES ('org%[2]d', gen_random_uuid(), gen_random_uuid(),
		gen_random_uuid(), 'prepared@example.com', 'initiated', 'human', 'web');
		PREPARE TRANSACTION 'soak%[1]d'`
	last := ""
	for n := 0; ; n++ {
		if err := onSource(ctx, b.primary.URL(), fmt.Sprintf(insert, n, n%3)); err != nil {
			return err
		}
		more := harness.Pause(end, 3*time.Second)
		if last != "" {
			if err := onSource(ctx, b.primary.URL(), last); err != nil {
				return err
			}
			b.changes.add("prepared transactions")
		}
		if last = fmt.Sprintf("COMMIT PREPARED 'soak%d'", n); !more {
			return onSource(ctx, b.primary.URL(), last)
		}
	}
}

// lockTables locks a table against reading, for longer than the workers' lock_timeout.
func (b *sources) lockTables(ctx, end context.Context) error {
	for harness.Pause(end, 4*time.Second) {
		for _, url := range []string{b.primary.URL(), b.westURL} {
			err := onSource(ctx, url, "SET lock_timeout = '300ms'; BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE; "+
				"SELECT pg_sleep(0.4); COMMIT")
			if err := b.changed("locks", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// bulkUpdate gives all runs that have an updated_at the same one, but for those that changed meanwhile.
func (b *sources) bulkUpdate(ctx context.Context, url string) error {
	for {
		err := onSource(ctx, url, "SET session_replication_role = replica; "+
			"LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE; UPDATE runs SET status = 'FAILED', "+
			"updated_at = greatest(now(), updated_at + interval '1 millisecond') WHERE isfinite(updated_at)")
		if refused := b.changed("bulk updates", err); refused != nil || err == nil {
			return refused
		}
	}
}

func (b *sources) pauseReplay(ctx context.Context) error {
	return onSource(ctx, b.standby.URL(), "SELECT pg_wal_replay_pause()")
}

func (b *sources) resumeReplay(ctx context.Context) error {
	return onSource(ctx, b.standby.URL(), "SELECT pg_wal_replay_resume()")
}

// purgePaused purges a person while one of the two workers is paused, with whatever it has read.
func (b *sources) purgePaused(ctx context.Context) error {
	paused := b.main.workers[1].process.Process
	if err := paused.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := b.main.store.run(ctx, "purge", "--org", "org0", "--person", purgedPerson, "--yes")
	return errors.Join(err, paused.Signal(syscall.SIGCONT))
}

// raiseTimeouts gives the workers' role time-outs that its statements keep, and ends its sessions.
func (b *sources) raiseTimeouts(ctx context.Context) error {
	for _, c := range b.copies {
		b.unready.addAll(c.name, 0)
	}
	if err := onSource(ctx, b.primary.URL(), "ALTER ROLE reader SET statement_timeout = '10min'"); err != nil {
		return err
	}
	const raised = "SELECT count(*) FROM pg_db_role_setting WHERE setconfig::text LIKE '%statement_timeout=10min%'"
	return b.eachDatabase(func(_, url string) error {
		var err error
		if !harness.Poll(ctx, time.Minute, time.Second, func() bool {
			var n float64
			n, err = numberOnSource(ctx, url, raised)
			return err == nil && n > 0
		}) {
			return errors.Join(errors.New("the setting did not arrive"), err)
		}
		return onSource(ctx, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
	})
}

// leftOfPerson counts rows that name the purged person.
func (b *sources) leftOfPerson(ctx context.Context) (n uint64, err error) {
	err = b.main.conn.QueryRow(ctx, "SELECT (SELECT count() FROM "+schema.TableAttributions+
		" WHERE organization_id = 'org0' AND user_identifier = '"+purgedPerson+"') + (SELECT count() FROM "+
		schema.TableRuns+" WHERE organization_id = 'org0' AND tupleElement(record, 'initiator_identifier') = '"+
		purgedPerson+"')").Scan(&n)
	return n, err
}
