package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/ingest/normalize"
)

// ErrRowSecurity is returned where row-level security hides rows of the source from the role. PostgreSQL leaves them
// out without an error: they would not be copied, and a comparison would take them for deleted.
var ErrRowSecurity = errors.New("row-level security of the source hides rows from the role: give it BYPASSRLS, or a " +
	"policy FOR SELECT USING (true) on each table")

// strict has PostgreSQL refuse a statement from which row-level security would leave rows out, as a further column of a
// SELECT. It also refuses where the policies let the role read all rows (Database.policed).
const strict = ", set_config('row_security', 'off', true)"

// hidingTables lists the tables of which row-level security may hide rows from whoever a transaction has read them as:
// without a permissive policy that is true, or with a restrictive one that is not. Read is what the transaction has
// locked. A table is read as the owner of a view, or as the role: where a view is its security_invoker, and where no
// view has the table or the mapping names it. What a function reads is not known, so that where one is called the role
// and its owner have to see all rows of all tables. What is read through its parent has the parent's policies, unless a
// view or the mapping names it too.
const hidingTables = `WITH me AS (
		SELECT oid, lower(' ' || $1) AS calls, regexp_replace(lower(' ' || $1 || ' '), '[^[:alnum:]_]', ' ', 'g') AS names
		FROM pg_roles WHERE rolname = current_user
	), read AS (
		SELECT c.oid, relkind, relowner, relrowsecurity, relforcerowsecurity,
			EXISTS (SELECT FROM pg_options_to_table(reloptions)
				WHERE option_name = 'security_invoker' AND option_value::boolean) AS invoked,
			strpos(names, regexp_replace(lower(' ' || relname || ' '), '[^[:alnum:]_]', ' ', 'g')) > 0 AS named
		FROM me, pg_locks JOIN pg_class AS c ON c.oid = relation JOIN pg_database AS d ON d.oid = database
		WHERE pid = pg_backend_pid() AND locktype = 'relation' AND datname = current_database()
			AND relkind IN ('r', 'p', 'v')
	), viewing AS (
		SELECT refclassid, refobjid AS relation, invoked, relowner AS owner
		FROM read JOIN pg_rewrite ON ev_class = read.oid JOIN pg_depend ON objid = pg_rewrite.oid
		WHERE relkind = 'v' AND classid = 'pg_rewrite'::regclass
	), viewed AS (
		SELECT * FROM viewing WHERE refclassid = 'pg_class'::regclass
	), called AS (
		SELECT prosecdef, proowner FROM me, pg_proc AS p
		WHERE pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
			AND (calls ~ ('[^[:alnum:]_]' || regexp_replace(lower(proname), '[^[:alnum:]_]', '.', 'g') || '"?\s*[(]')
				OR p.oid IN (SELECT relation FROM viewing WHERE refclassid = 'pg_proc'::regclass))
	), reader AS (
		SELECT relation, owner AS role FROM viewed WHERE NOT invoked
		UNION SELECT read.oid, me.oid FROM read, me
		WHERE named OR read.oid NOT IN (SELECT relation FROM viewed WHERE NOT invoked)
			OR read.oid IN (SELECT relation FROM viewed WHERE invoked) OR EXISTS (SELECT FROM called)
		UNION SELECT read.oid, proowner FROM read, called WHERE prosecdef
	), policy AS (
		SELECT relation, role, polpermissive, pg_get_expr(polqual, polrelid) = 'true' AS whole
		FROM reader JOIN pg_policy ON polrelid = relation AND polcmd IN ('r', '*')
		WHERE EXISTS (SELECT FROM unnest(polroles) AS r WHERE r = 0 OR pg_has_role(role, r, 'USAGE'))
	)
	SELECT coalesce(string_agg(DISTINCT t.oid::regclass::text, ', '), '')
	FROM read AS t JOIN reader ON relation = t.oid JOIN pg_roles AS r ON r.oid = role
	WHERE relrowsecurity AND NOT rolsuper AND NOT rolbypassrls
		AND (relforcerowsecurity OR NOT pg_has_role(role, relowner, 'USAGE'))
		AND (named OR t.oid IN (SELECT relation FROM viewed) OR EXISTS (SELECT FROM called)
			OR NOT EXISTS (SELECT FROM pg_inherits JOIN read AS parent ON parent.oid = inhparent WHERE inhrelid = t.oid))
		AND (NOT EXISTS (SELECT FROM policy AS p WHERE (p.relation, p.role) = (t.oid, r.oid) AND polpermissive AND whole)
			OR EXISTS (SELECT FROM policy AS p WHERE (p.relation, p.role) = (t.oid, r.oid) AND NOT polpermissive
				AND NOT whole))`

// sawAll returns an ErrRowSecurity unless policies have let the transaction read all rows. It is asked after it has
// read, when no policy of what it has read can be changed before it ends.
func (d *Database) sawAll(ctx context.Context, tx pgx.Tx, kind normalize.Kind) error {
	var hidden string
	if err := tx.QueryRow(ctx, hidingTables, d.mapping[kind]).Scan(&hidden); err != nil {
		return err
	}
	if hidden != "" {
		return fmt.Errorf("%s: %w", hidden, ErrRowSecurity)
	}
	return nil
}

// readingAny is reading, also where policies let the role read all rows. From then on every transaction of the kind
// looks whether they still do. The error of a role that lacks a privilege is that of PostgreSQL.
func (d *Database) readingAny(ctx context.Context, kind normalize.Kind, read func(pgx.Tx) error) error {
	err := d.reading(ctx, kind, "", read)
	if !lacksPrivilege(err) || d.isPoliced(kind) {
		return err
	}
	if lacksPrivilege(d.transact(ctx, "", read)) {
		return err
	}
	d.mu.Lock()
	d.policed[kind] = true
	d.mu.Unlock()
	return d.reading(ctx, kind, "", read)
}

func (d *Database) isPoliced(kind normalize.Kind) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.policed[kind]
}

func lacksPrivilege(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == insufficientPrivilege
}
