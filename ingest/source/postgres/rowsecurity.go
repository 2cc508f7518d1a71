package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrRowSecurity is returned where row-level security hides rows of the source from the role. PostgreSQL leaves them
// out without an error: they would not be copied, and a comparison would take them for deleted.
var ErrRowSecurity = errors.New("row-level security of the source hides rows from the role: give it BYPASSRLS, or a " +
	"policy FOR SELECT USING (true) on each table")

// strict has PostgreSQL refuse a statement from which row-level security would leave rows out, as a further column of a
// SELECT. It also refuses where the policies let the role read all rows (Database.policed).
const strict = ", set_config('row_security', 'off', true)"

// policedTables counts the tables that a text names and that have row-level security for the role, and lists those of
// which it hides rows: without a permissive policy that is true, or with a restrictive one that is not.
const policedTables = `SELECT count(*), coalesce(string_agg(name, ', ' ORDER BY name) FILTER (WHERE NOT whole), '')
	FROM (SELECT c.oid::regclass::text AS name,
		EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polpermissive
			AND p.polcmd IN ('r', '*') AND pg_get_expr(p.polqual, p.polrelid) = 'true'
			AND EXISTS (SELECT FROM unnest(p.polroles) AS r WHERE r = 0 OR pg_has_role(r, 'USAGE')))
		AND NOT EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid AND NOT p.polpermissive
			AND p.polcmd IN ('r', '*') AND pg_get_expr(p.polqual, p.polrelid) != 'true'
			AND EXISTS (SELECT FROM unnest(p.polroles) AS r WHERE r = 0 OR pg_has_role(r, 'USAGE'))) AS whole
	FROM pg_class AS c
	WHERE c.relkind IN ('r', 'p') AND strpos(lower($1), lower(c.relname)) > 0 AND row_security_active(c.oid)) AS t`

// sees returns an ErrRowSecurity unless policies let the role read all rows of what the mapping names.
func (d *Database) sees(ctx context.Context, tx pgx.Tx) error {
	var texts []string
	for _, text := range d.mapping {
		texts = append(texts, text)
	}
	var policed int
	var hidden string
	if err := tx.QueryRow(ctx, policedTables, strings.Join(texts, "\n")).Scan(&policed, &hidden); err != nil {
		return err
	}
	switch {
	case hidden != "":
		return fmt.Errorf("%s: %w", hidden, ErrRowSecurity)
	case policed == 0: // of a table behind a view, then
		return ErrRowSecurity
	}
	return nil
}

// readingAny is reading, also where policies let the role read all rows. From then on every transaction looks whether
// they still do. The error of a role that lacks a privilege is that of PostgreSQL.
func (d *Database) readingAny(ctx context.Context, read func(pgx.Tx) error) error {
	err := d.reading(ctx, "", read)
	if !lacksPrivilege(err) || d.policed.Load() {
		return err
	}
	if lacksPrivilege(d.transact(ctx, "", read)) {
		return err
	}
	d.policed.Store(true)
	return d.reading(ctx, "", read)
}

func lacksPrivilege(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == insufficientPrivilege
}
