package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/runlens/runlens/ingest/normalize"
)

// numbers are the types of ids that are no UUIDs.
var numbers = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID}

// castToInstant matches what gives a time without a zone that of the session, unless it is a constant.
var castToInstant = regexp.MustCompile(`\)::timestamp(\(\d\))? with time zone`)

// checkTypes refuses columns whose values would be taken for something else, or all be rejected.
func (d *Database) checkTypes(ctx context.Context, kind normalize.Kind, columns []pgconn.FieldDescription) error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("the SELECT of record %s: %s", kind, fmt.Sprintf(format, args...))
	}
	for _, column := range columns {
		switch {
		case column.Name == "organization_id" && slices.Contains(numbers, column.DataTypeOID):
			return fault("organization_id is a number, and organizations are texts: write X::text AS organization_id, with X " +
				"for what it selects now")
		case strings.HasSuffix(column.Name, "_id") && slices.Contains(numbers, column.DataTypeOID):
			of := strings.TrimPrefix(strings.TrimSuffix(column.Name, "_id"), "parent_")
			return fault("%s is a number, and ids are UUIDs: write md5('%s:' || X)::uuid AS %[1]s, "+
				"with X for what it selects now", column.Name, of)
		case !strings.HasSuffix(column.Name, "_at"):
			continue
		}
		made, err := d.expressionsOf(ctx, kind, column.Name)
		if err != nil {
			return err
		}
		switch column.DataTypeOID {
		case pgtype.TimestamptzOID:
			if !slices.ContainsFunc(made, castToInstant.MatchString) {
				continue
			}
		case pgtype.TimestampOID, pgtype.DateOID:
		default:
			// NULL AS deleted_at is a text. Where that is not at the top of the plan, the plan may have NULLs of others, too.
			if column.Name == "deleted_at" && column.DataTypeOID == pgtype.TextOID && slices.ContainsFunc(made, isNull) {
				continue
			}
			return fault("%s must have the type timestamptz", column.Name)
		}
		zone, err := d.otherZone(ctx)
		if err != nil {
			return err
		}
		if zone != "" {
			return fault("%[1]s has no time zone, and that of the database is %[2]s: write X AT TIME ZONE '%[2]s' AS %[1]s "+
				"if the database fills it (now()), or X AT TIME ZONE 'UTC' AS %[1]s if the application writes UTC, with X for "+
				"the column", column.Name, zone)
		}
	}
	return nil
}

// checkEncoding refuses a database that does not know what the bytes of its texts mean. PostgreSQL fails a statement
// for all rows when one of them has bytes that are no UTF-8.
func (d *Database) checkEncoding(ctx context.Context) error {
	var encoding string
	err := d.reading(ctx, "", "", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding)
	})
	if err == nil && encoding == "SQL_ASCII" {
		err = errors.New("the database has the encoding SQL_ASCII, in which a text may be any bytes: copy it with pg_dump " +
			"and psql into one that has another encoding (CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0)")
	}
	return err
}

// expressionsOf returns what PostgreSQL computes for a column of a SELECT. Where the top of the plan does not show it,
// that is what all of the plan computes: the plan for one column leaves others out, but for those of a WITH or a
// DISTINCT.
func (d *Database) expressionsOf(ctx context.Context, kind normalize.Kind, column string) ([]string, error) {
	plan, err := d.explain(ctx, kind, "", "SELECT s."+column+" FROM "+d.from(kind), nil)
	made, shown := plan.Output, len(plan.Output) > 0
	plan.each(func(n *node) {
		// An Append shows no columns, and what is above one those of the first part. A scan of a subquery shows names.
		shown = shown && len(n.Output) > 0 && n.Type != "Subquery Scan" && n.Parent != "SubPlan" && n.Parent != "InitPlan"
	})
	if !shown {
		plan.each(func(n *node) { made = append(made, n.Output...) })
	}
	return made, err
}

// isNull reports whether an expression of a plan is the NULL of a SELECT. Of an outer join it is in parentheses.
func isNull(expression string) bool { return strings.Trim(expression, "()") == "NULL::text" }

// otherZone returns a time zone that sessions of the database have and that is not UTC; empty when there is none.
// Where all have UTC, a time without a zone is UTC, whoever wrote it.
func (d *Database) otherZone(ctx context.Context) (zone string, err error) {
	err = d.reading(ctx, "", "", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(min(zone), '') FROM (
				SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'
				UNION
				SELECT substring(setting FROM position('=' IN setting) + 1)
				FROM pg_db_role_setting, unnest(setconfig) AS setting
				WHERE setting ILIKE 'timezone=%'
					AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
			) AS zones (zone)
			WHERE EXISTS (SELECT FROM generate_series('2000-01-01Z', '2037-01-01Z', interval '29 days') AS t
				WHERE t AT TIME ZONE zone <> t AT TIME ZONE 'UTC')`).Scan(&zone)
	})
	return zone, err
}
