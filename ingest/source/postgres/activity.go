package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// An Activity is what a database has in progress at one instant.
type Activity struct {
	// Now is the database's clock. A transaction that is not in Open and is not visible to later statements
	// begins at Now or after it. That of a standby is the commit of the transaction that it replayed last.
	Now  time.Time
	Open []Transaction
	// Behind is how old the state is that a standby shows, 0 for a primary.
	Behind time.Duration
}

// Standby reports whether the database is a standby.
func (a Activity) Standby() bool {
	return slices.ContainsFunc(a.Open, func(t Transaction) bool { return t.Name == Standby })
}

// A Transaction may still commit changes that later statements will see. Those carry times at or after its begin.
type Transaction struct {
	Name  string    // no other transaction has it
	Since time.Time // its begin; zero where the database does not say
	Ended bool      // it has ended since, or was prepared, which gives it another name
}

// Names for transactions that cannot be distinguished.
const (
	Hidden  = "sessions that the source does not show to this role (grant it pg_read_all_stats)"
	Standby = "a standby, which does not show the transactions of its primary"
)

// Prepared begins the name of a prepared transaction.
const Prepared = "prepared transaction"

// thisDatabase is an expression for the database's oid. What is in progress is asked for every second. So it is taken
// from the functions of which the views pg_stat_activity and pg_prepared_xacts are made: planning a view's joins took
// twice as long as reading it.
const thisDatabase = "(SELECT oid FROM pg_database WHERE datname = current_database())"

// Activity returns what is in progress, this process's own reads excepted. The order matters: the clock is read
// before the sessions, and the sessions before the prepared transactions, which they can become. It is one transaction,
// so that one server says all of it.
func (d *Database) Activity(ctx context.Context) (a Activity, err error) {
	err = d.transact(ctx, "", func(tx pgx.Tx) error { return a.read(ctx, d, tx) })
	return a, err
}

func (a *Activity) read(ctx context.Context, d *Database, tx pgx.Tx) error {
	var standby bool
	err := tx.QueryRow(ctx, "SELECT statement_timestamp(), pg_is_in_recovery()").Scan(&a.Now, &standby)
	if err != nil {
		return err
	}
	if standby {
		a.Open = append(a.Open, Transaction{Name: Standby})
		if err := a.replayed(ctx, tx); err != nil {
			return err
		}
	}
	sessions, err := d.sessions(ctx, tx)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "SELECT transaction::text FROM pg_prepared_xact() WHERE dbid = "+thisDatabase)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range ids {
		// What is known is when it was prepared, not when it began.
		a.Open = append(a.Open, Transaction{Name: Prepared + " " + id})
	}
	if err == nil && len(ids) > 0 {
		err = d.markEnded(ctx, tx, sessions)
	}
	a.Open = append(a.Open, sessions...)
	return err
}

// markEnded finds out which sessions' transactions are no longer in progress.
func (d *Database) markEnded(ctx context.Context, tx pgx.Tx, sessions []Transaction) error {
	// Else PostgreSQL shows a transaction the same sessions again.
	if _, err := tx.Exec(ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return err
	}
	now, err := d.sessions(ctx, tx)
	if err != nil {
		return err
	}
	for i := range sessions {
		t := &sessions[i]
		t.Ended = !slices.ContainsFunc(now, func(still Transaction) bool { return still.Name == t.Name })
	}
	return nil
}

// replayed sets the clock of a standby. What its own clock says is later than what it shows: rows that become visible
// meanwhile would lie before the instant from which they are read. A standby that was started again and has replayed
// no transaction yet is at its last checkpoint or after it. It is as old as its last transaction, unless it has
// replayed all that the primary had when it sent its last message, which only pg_read_all_stats may know.
func (a *Activity) replayed(ctx context.Context, tx pgx.Tx) error {
	var behind float64
	err := tx.QueryRow(ctx, `SELECT now, coalesce(extract(epoch FROM clock_timestamp() - greatest(now,
			CASE WHEN pg_last_wal_replay_lsn() >= latest_end_lsn THEN last_msg_send_time END)), 0)::float8
		FROM (SELECT coalesce(pg_last_xact_replay_timestamp(),
			(SELECT checkpoint_time FROM pg_control_checkpoint())) AS now) AS s
		LEFT JOIN pg_stat_wal_receiver ON true`).Scan(&a.Now, &behind)
	a.Behind = max(0, time.Duration(behind*float64(time.Second)))
	return err
}

// sessions returns the transactions of sessions, also of those that have only read so far. Without the right to see
// a session, or where it does not track its activity, PostgreSQL shows no begin.
func (d *Database) sessions(ctx context.Context, tx pgx.Tx) (open []Transaction, err error) {
	rows, err := tx.Query(ctx, `SELECT pid::bigint, coalesce(xact_start, 'epoch'), xact_start IS NULL
		FROM pg_stat_get_activity(NULL) WHERE datid = `+thisDatabase+` AND pid <> pg_backend_pid()
			AND backend_type IS DISTINCT FROM 'autovacuum worker'
			AND (xact_start IS NOT NULL OR state = 'disabled' OR query = '<insufficient privilege>')`)
	if err != nil {
		return nil, err
	}
	var pid int64
	var since time.Time
	var unknown, hidden bool
	_, err = pgx.ForEachRow(rows, []any{&pid, &since, &unknown}, func() error {
		name := sessionName(pid, since)
		d.mu.Lock()
		own := d.own[name]
		d.mu.Unlock()
		switch {
		case unknown:
			hidden = true
		case !own:
			open = append(open, Transaction{Name: name, Since: since})
		}
		return nil
	})
	if hidden {
		open = append(open, Transaction{Name: Hidden})
	}
	return open, err
}

func sessionName(pid int64, began time.Time) string {
	return fmt.Sprintf("session %d, in a transaction since %s", pid, began.UTC().Format(time.RFC3339Nano))
}
