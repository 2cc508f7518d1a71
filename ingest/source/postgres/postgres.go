// Package postgres reads records from a PostgreSQL operational database: all of them, those of one
// day, or those that changed since a key.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// maxConns serves the polling of every kind, and as many serve a reconcile beside it.
const maxConns = 4

// A Database is an operational database. It is safe for concurrent use.
type Database struct {
	pool    *pgxpool.Pool
	changes *pgxpool.Pool // for pages of changes
	mapping Mapping
}

// Open connects to the database of a postgres:// URL. Errors carry no password.
func Open(ctx context.Context, url string, mapping Mapping) (*Database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the source must look like postgres://user@host:5432/database")
	}
	config.MaxConns = maxConns
	config.ConnConfig.RuntimeParams["application_name"] = "runlens"
	// A timestamp without a zone is taken for UTC, and nothing is ever written.
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	config = config.Copy()
	// Where many rows changed at the same instant, as after a migration, the planner takes a page for
	// half of the table, and reads and sorts that. The index on (updated_at, id) is right for every page.
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	config.ConnConfig.RuntimeParams["enable_bitmapscan"] = "off"
	changes, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return &Database{pool, changes, mapping}, nil
}

// Name names the database by its address, without what may change about it: user and password.
func (d *Database) Name() string {
	c := d.pool.Config().ConnConfig
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// Close closes all connections.
func (d *Database) Close() {
	d.pool.Close()
	d.changes.Close()
}

// Check holds the mapping against the database: every SELECT must run and have the columns it needs, and no others.
func (d *Database) Check(ctx context.Context) error {
	for _, kind := range normalize.Kinds {
		rows, err := d.pool.Query(ctx, "SELECT * FROM ("+d.mapping[kind]+") AS s LIMIT 0")
		if err != nil {
			return fmt.Errorf("the SELECT of record %s: %w", kind, err)
		}
		var names []string
		for _, f := range rows.FieldDescriptions() {
			names = append(names, f.Name)
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return fmt.Errorf("the SELECT of record %s: %w", kind, err)
		}
		if err := checkColumns(kind, names); err != nil {
			return err
		}
	}
	return nil
}

func checkColumns(kind normalize.Kind, names []string) error {
	wanted := normalize.Fields(kind)
	if !slices.Contains(wanted, "updated_at") {
		wanted = append(slices.Clone(wanted), "updated_at")
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the SELECT of record %s lacks the column %s", kind, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(wanted, name) {
			return fmt.Errorf("the SELECT of record %s has the column %s, which is no field of it", kind, name)
		}
	}
	return nil
}

// A Key is a place in the order of changes of one kind: updated_at, id, organization.
type Key struct {
	At           time.Time             `json:"at"` // to the microsecond
	ID           string                `json:"id"` // empty: before all rows of At
	Organization schema.OrganizationID `json:"organization"`
}

// Changed calls visit with up to limit records behind a key, in the order of their keys, and returns how
// many there were. Records and their texts are valid during the call.
func (d *Database) Changed(ctx context.Context, kind normalize.Kind, after Key, limit int, visit func(*source.Record, Key) error) (int, error) {
	id := idColumn(kind)
	where, args := "s.updated_at >= $2", []any{limit, after.At}
	if after.ID != "" {
		where = "(s.updated_at, s." + id + ", s.organization_id) > ($2, $3, $4)"
		args = append(args, after.ID, string(after.Organization))
	}
	return d.read(ctx, d.changes, kind, where+" ORDER BY s.updated_at, s."+id+", s.organization_id LIMIT $1", args, visit)
}

// All calls visit with every record of a kind, in no order, from one snapshot.
func (d *Database) All(ctx context.Context, kind normalize.Kind, visit func(*source.Record) error) error {
	_, err := d.read(ctx, d.pool, kind, "true", nil, func(r *source.Record, _ Key) error { return visit(r) })
	return err
}

// OfDay calls visit with the records of one organization whose event clock lies on one UTC day; with
// all of its agents, which have no event clock.
func (d *Database) OfDay(ctx context.Context, kind normalize.Kind, organization schema.OrganizationID, day time.Time, visit func(*source.Record) error) error {
	where, args := "s.organization_id = $1", []any{string(organization)}
	if clock := clockColumn(kind); clock != "" {
		where += " AND s." + clock + " >= $2 AND s." + clock + " < $3"
		args = append(args, day, day.AddDate(0, 0, 1))
	}
	_, err := d.read(ctx, d.pool, kind, where, args, func(r *source.Record, _ Key) error { return visit(r) })
	return err
}

func idColumn(kind normalize.Kind) string { return string(kind) + "_id" }

func clockColumn(kind normalize.Kind) string {
	switch kind {
	case normalize.KindRun:
		return "created_at"
	case normalize.KindAttribution:
		return "occurred_at"
	default:
		return ""
	}
}

// read asks for every field as text, as it would stand in a file; PostgreSQL knows how to write its types.
func (d *Database) read(ctx context.Context, pool *pgxpool.Pool, kind normalize.Kind, tail string, args []any, visit func(*source.Record, Key) error) (n int, err error) {
	fields := normalize.Fields(kind)
	var columns []string
	for _, field := range fields {
		columns = append(columns, text("s."+field, strings.HasSuffix(field, "_at")))
	}
	// Microseconds are what PostgreSQL keeps, and numbers have them exactly.
	columns = append(columns, "(extract(epoch FROM s.updated_at::timestamptz) * 1000000)::bigint::text")
	rows, err := pool.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM ("+d.mapping[kind]+") AS s WHERE "+tail, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	record := source.Record{Raw: normalize.Raw{Kind: kind}}
	id := slices.Index(fields, idColumn(kind))
	for rows.Next() {
		values := rows.RawValues() // a text is sent as it is, whatever the format
		copy(record.Raw.Values[:], values[:len(fields)])
		micros, err := strconv.ParseInt(string(values[len(fields)]), 10, 64)
		if err != nil {
			return n, fmt.Errorf("a %s record has no usable updated_at: %q", kind, values[len(fields)])
		}
		n++
		record.Line = n
		key := Key{time.UnixMicro(micros).UTC(), string(values[id]), schema.OrganizationID(values[0])}
		if err := visit(&record, key); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// text is an expression for a column as text; that of a time is RFC 3339.
func text(column string, isTime bool) string {
	if isTime {
		return "to_char(" + column + "::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
	}
	return column + "::text"
}

// Clock returns the database's time and since when its oldest writing transaction that it tells of is
// open: what such a transaction has changed will only be seen later, at the times it was changed.
func (d *Database) Clock(ctx context.Context) (now, oldest time.Time, err error) {
	err = d.pool.QueryRow(ctx, `SELECT clock_timestamp(), coalesce(min(xact_start), clock_timestamp())
		FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()`).Scan(&now, &oldest)
	return now, oldest, err
}

// retryableStates are the SQLSTATE classes and codes of conditions that pass by themselves.
var retryableStates = []string{
	"08",    // connection exceptions
	"40",    // transaction rollbacks: serialization failure, deadlock, conflict with recovery
	"53300", // too many connections
	"57P",   // admin shutdown, crash shutdown, cannot connect now, database dropped
}

// Retryable reports whether the same statement may succeed later: the list is closed, everything else
// needs a person.
func Retryable(err error) bool {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return slices.ContainsFunc(retryableStates, func(state string) bool { return strings.HasPrefix(failure.Code, state) })
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "conn closed")
}
