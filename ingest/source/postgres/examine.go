package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/doctor/finding"
)

const (
	// longTransaction is from when on a transaction makes a worker read again what it has read: it remembers rows for so
	// long (ingest/worker).
	longTransaction = 10 * time.Minute
	// farBehind is from when on the delay of a standby is a warning.
	farBehind = time.Minute
	// shortTimeout is below what reading a large table may take.
	shortTimeout = time.Hour
	// oldestVersion is the oldest PostgreSQL that its own developers maintain, as server_version_num has it.
	oldestVersion = 140000

	insufficientPrivilege = "42501"
)

// Examine says what keeps a worker from reading the source, or makes that expensive or late. The last findings are what
// Advise says of each kind. deleteMissing says that the worker deletes what the source no longer has.
func (d *Database) Examine(ctx context.Context, deleteMissing bool) []finding.Finding {
	var version int
	err := d.pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version)
	if err != nil {
		return []finding.Finding{{Check: "source", Result: finding.Problem, Says: "PostgreSQL does not answer: " +
			finding.OneLine(err.Error()), Do: "check --source, and the password in PGPASSWORD or PGPASSFILE"}}
	}
	found := []finding.Finding{judgeVersion(version), d.examineMapping(ctx)}
	if found[1].Result == finding.OK {
		for _, kind := range normalize.Kinds {
			advice, err := d.Advise(ctx, kind, deleteMissing)
			found = append(found, orUnknown("source index", advice, err)...)
		}
	}
	settings, err := d.ExamineSettings(ctx)
	return append(found, orUnknown("source", settings, err)...)
}

func judgeVersion(version int) finding.Finding {
	f := finding.Finding{Check: "source version", Result: finding.OK, Says: fmt.Sprintf("PostgreSQL %d", version/10000)}
	if version < oldestVersion {
		f.Result, f.Do = finding.Warning, "upgrade PostgreSQL"
		f.Says += " is older than what runlens is tested with, and is no longer maintained"
	}
	return f
}

// orUnknown adds that a check failed.
func orUnknown(check string, found []finding.Finding, err error) []finding.Finding {
	if err != nil {
		found = append(found, finding.Finding{Check: check, Result: finding.Unknown,
			Says: "it cannot be read: " + finding.OneLine(err.Error())})
	}
	return found
}

// examineMapping is Check as a finding. Check also refuses a time without a zone where that of the database is not UTC.
func (d *Database) examineMapping(ctx context.Context) finding.Finding {
	f := finding.Finding{Check: "source mapping", Result: finding.OK,
		Says: "every SELECT of the mapping runs and has the columns it needs; the time zone of the source does not matter"}
	err := d.Check(ctx)
	if err == nil {
		return f
	}
	f.Result, f.Says = finding.Problem, finding.OneLine(err.Error())
	if errors.Is(err, ErrRowSecurity) {
		f.Do = "ALTER ROLE " + d.role(ctx) + " BYPASSRLS"
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		f.Do = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + d.role(ctx)
		if !strings.Contains(refused.Message, "table") {
			f.Do = "GRANT USAGE ON SCHEMA public TO " + d.role(ctx)
		}
		f.Says = "the role may not read what the mapping selects: " + finding.OneLine(refused.Message)
	}
	return f
}

// Advise says what makes copying a kind of records expensive for the source, or late, and how to change that. It is
// empty where nothing does.
func (d *Database) Advise(ctx context.Context, kind normalize.Kind, deleteMissing bool) (found []finding.Finding,
	err error) {
	index, err := d.MissingIndex(ctx, kind)
	if err != nil {
		return nil, err
	}
	gaps, err := d.Gaps(ctx, kind)
	if err != nil {
		return nil, err
	}
	warn := func(check, do, says string) {
		found = append(found, finding.Finding{Check: check, Result: finding.Warning, Do: do,
			Says: string(kind) + " records: " + says})
	}
	if index != "" {
		warn("source index", index,
			"the source has no index in the order of changes, so every poll reads and sorts all rows")
	}
	if len(gaps.Joined) > 0 {
		warn("source mapping", "let the mapping's updated_at follow them (ingest/mappings.md)", "the mapping reads tables "+
			"whose changes do not move its updated_at; such a change is copied by the next full comparison: "+
			strings.Join(gaps.Joined, ", "))
	}
	if len(gaps.Elsewhere) > 0 {
		warn("source mapping", "copy from where they are written, or let --overlap be the time that they may take to "+
			"arrive (ingest/mappings.md)", "rows of these tables are written elsewhere: what arrives later than --overlap "+
			"after its updated_at is copied by the next full comparison: "+strings.Join(gaps.Elsewhere, ", "))
	}
	if gaps.Hides && !deleteMissing {
		warn("source mapping", "run the worker with --delete-missing (ingest/mappings.md)",
			"the mapping may leave rows out; those that were copied before stay stored and are counted")
	}
	return found, nil
}

// sourceClock is compared with ours. A worker loses no row where they differ, but the times that the source gives to
// records are then not those of anybody else.
var sourceClock = finding.Clock{
	Of: "the source", So: "the times which it gives to records, and certain_until, are not our time",
	Warning: finding.ClockWarning, Problem: finding.ClockProblem,
}

// ExamineSettings says what of the role, the server and its transactions keeps a worker from reading, or from knowing
// what it has read.
func (d *Database) ExamineSettings(ctx context.Context) (found []finding.Finding, err error) {
	role := d.role(ctx)
	var seesAll bool
	var prepared int
	var oldest float64 // seconds
	var now time.Time
	before := time.Now()
	err = d.pool.QueryRow(ctx, `SELECT statement_timestamp(),
		pg_has_role('pg_read_all_stats', 'USAGE'),
		(SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()),
		(SELECT coalesce(extract(epoch FROM statement_timestamp() - min(prepared)), 0)::float8
			FROM pg_prepared_xacts WHERE database = current_database())`).
		Scan(&now, &seesAll, &prepared, &oldest)
	if err != nil {
		return nil, err
	}
	clock := sourceClock.Judge(now, before, time.Now())
	clock.Check = "source clock"
	add := func(check string, result finding.Result, do, format string, values ...any) {
		found = append(found, finding.Finding{Check: check, Result: result, Do: do, Says: fmt.Sprintf(format, values...)})
	}
	if seesAll {
		add("source rights", finding.OK, "", "the role sees the transactions of others")
	} else {
		add("source rights", finding.Warning, "GRANT pg_read_all_stats TO "+role, "the role does not see the transactions "+
			"of others, so what they commit late may be copied only by the next full comparison")
	}
	found = append(found, clock)
	activity, err := d.Activity(ctx)
	if err != nil {
		return found, err
	}
	switch {
	case d.several(ctx):
		add("source standby", finding.Warning, "name one server, or add target_session_attrs=primary to the address",
			"the address stands for several servers: a pass that meets two of them begins again, and a full comparison by a "+
				"standby fails where it would take something out of the store")
	case !activity.Standby():
		add("source standby", finding.OK, "", "the source is a primary")
	case activity.Behind >= farBehind:
		add("source standby", finding.Warning, "see pg_stat_replication at its primary",
			"the source is a standby, %v behind its primary", activity.Behind.Round(time.Second))
	default:
		add("source standby", finding.OK, "", "the source is a standby, %v behind its primary",
			activity.Behind.Round(time.Millisecond))
	}
	timeouts, err := d.timeouts(ctx, role)
	if err != nil {
		return found, err
	}
	found = append(found, timeouts...)
	if prepared == 0 {
		add("source transactions", finding.OK, "", "no transaction is prepared and waits for its commit")
	} else {
		result, age, do := finding.OK, time.Duration(oldest*float64(time.Second)), ""
		if age >= longTransaction {
			result, do = finding.Warning, "SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts"
		}
		add("source transactions", result, do, "%d prepared transactions wait for their commit, the oldest for %v: a worker "+
			"reads from before them again and again", prepared, age.Round(time.Second))
	}
	for _, t := range activity.Open {
		if age := activity.Now.Sub(t.Since); !t.Since.IsZero() && age >= longTransaction {
			add("source transactions", finding.Warning, "end it, or SELECT pg_terminate_backend(its pid)",
				"%s: open for %v, and a worker reads from before it again and again", t.Name, age.Round(time.Second))
		}
	}
	return found, nil
}

// timeouts judges the limits of the role's sessions. Transactions wait for locks, and hold a snapshot while their rows
// are stored.
func (d *Database) timeouts(ctx context.Context, role string) (found []finding.Finding, err error) {
	rows, err := d.pool.Query(ctx, `SELECT name, setting::bigint FROM pg_settings WHERE setting::text ~ '^[0-9]+$'
		AND name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout') ORDER BY name`)
	if err != nil {
		return nil, err
	}
	var name string
	var millis int64
	_, err = pgx.ForEachRow(rows, []any{&name, &millis}, func() error {
		limit := time.Duration(millis) * time.Millisecond
		if limit > 0 && limit < shortTimeout {
			found = append(found, finding.Finding{Check: "source timeouts", Result: finding.Warning,
				Do: "ALTER ROLE " + role + " SET " + name + " = 0", Says: fmt.Sprintf("%s is %v, and a full comparison reads "+
					"whole tables in one transaction", name, limit)})
		}
		return nil
	})
	if err == nil && found == nil {
		found = []finding.Finding{{Check: "source timeouts", Result: finding.OK,
			Says: "no timeout ends a reading of whole tables; a lock that is not given in time (lock_timeout) is asked for " +
				"again"}}
	}
	return found, err
}

// role is the name of the role, as SQL.
func (d *Database) role(ctx context.Context) string {
	var name string
	if d.pool.QueryRow(ctx, "SELECT current_user").Scan(&name) != nil {
		return "ROLE"
	}
	return pgx.Identifier{name}.Sanitize()
}
