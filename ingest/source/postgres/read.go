package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// Changed calls visit with up to limit records after a key that have a key with a usable instant, in the order of their
// keys, and returns how many there were. Records and their texts are valid during the call.
func (d *Database) Changed(ctx context.Context, kind normalize.Kind, after Key, limit int,
	visit func(*source.Record, Key) error) (int, error) {
	where, order, args := changedAfter(kind, after)
	return d.read(ctx, pageSettings, kind, where+order, append(args, limit), visit)
}

// Timeless is Changed for the records that have a key without one: the order of changes says nothing of them.
func (d *Database) Timeless(ctx context.Context, kind normalize.Kind, after Key, limit int,
	visit func(*source.Record, Key) error) (n int, err error) {
	if after.At.IsZero() {
		after.At = NegativeInfinity
	}
	for _, at := range timeless {
		if at.Before(after.At) {
			continue
		}
		if at.After(after.At) {
			after = Key{At: at}
		}
		where, order, args := timelessAfter(kind, after)
		more, err := d.read(ctx, pageSettings, kind, where+order, append(args, limit-n), visit)
		if n += more; err != nil || n == limit {
			return n, err
		}
	}
	return n, nil
}

// Keyless calls visit with the records that have no key, which Changed and Timeless leave out: a comparison with NULL
// holds for no row. They have no order either, so it is one statement for all of them.
func (d *Database) Keyless(ctx context.Context, kind normalize.Kind, visit func(*source.Record) error) error {
	return d.each(ctx, kind, "s."+idColumn(kind)+" IS NULL OR s.organization_id IS NULL", nil, visit)
}

// hasKey is a condition for the rows that have a key. The index of changes has what it asks for.
func hasKey(kind normalize.Kind) string {
	return " AND s." + idColumn(kind) + " IS NOT NULL AND s.organization_id IS NOT NULL"
}

// texts order rows after their ids. To citext and to some collations other texts are equal, and a page that ended
// between two of them would leave one out.
func texts(kind normalize.Kind) string {
	return "s." + idColumn(kind) + `::text COLLATE "C", s.organization_id::text COLLATE "C"`
}

// changedAfter returns a condition for the rows after a key, their order, and the arguments before the limit.
func changedAfter(kind normalize.Kind, after Key) (where, order string, args []any) {
	columns := "s.updated_at, s." + idColumn(kind) + ", " + texts(kind)
	order = " ORDER BY " + columns
	switch {
	case after.At.IsZero():
		where = "s.updated_at > '-infinity'"
	case !after.OfRow:
		where, args = "s.updated_at >= $1", []any{after.literal()}
	default:
		where = "(" + columns + ") > ($1, $2, $2, $3)"
		args = []any{after.literal(), after.ID, string(after.Organization)}
	}
	return where + " AND s.updated_at < " + tooLate + hasKey(kind), limited(order, args), args
}

// timelessAfter is changedAfter for the rows with the updated_at of a key that is no instant. The index has those
// without one, too, after all others.
func timelessAfter(kind normalize.Kind, after Key) (where, order string, args []any) {
	columns := "s." + idColumn(kind) + ", " + texts(kind)
	order = " ORDER BY " + columns
	switch {
	case after.At.Equal(Null):
		where = "s.updated_at IS NULL"
	case after.At.Equal(TooLate):
		where = "s.updated_at >= " + tooLate + " AND s.updated_at < 'infinity'"
	default:
		where = "s.updated_at = '" + after.literal() + "'"
	}
	if after.OfRow {
		where += " AND (" + columns + ") > ($1, $1, $2)"
		args = []any{after.ID, string(after.Organization)}
	}
	return where + hasKey(kind), limited(order, args), args
}

func limited(order string, args []any) string { return fmt.Sprintf("%s LIMIT $%d", order, len(args)+1) }

// All calls visit with every record of a kind, in no order, from one snapshot.
func (d *Database) All(ctx context.Context, kind normalize.Kind, visit func(*source.Record) error) error {
	return d.each(ctx, kind, "true", nil, visit)
}

// OfDays calls visit with the records of one organization whose event clock lies on one of some UTC days; with all of
// its agents, which have no event clock. It is one statement for all days: where no index has the event clock, each
// reads the whole organization.
func (d *Database) OfDays(ctx context.Context, kind normalize.Kind, organization schema.OrganizationID,
	days []time.Time, visit func(*source.Record) error) error {
	clock := clockColumn(kind)
	if clock == "" {
		return d.eachOf(ctx, kind, organization, "true", nil, visit)
	}
	first, last := slices.MinFunc(days, time.Time.Compare), slices.MaxFunc(days, time.Time.Compare)
	dates := make([]string, len(days))
	for i, day := range days {
		dates[i] = day.Format(time.DateOnly)
	}
	// The bounds are for an index, if there is one. Sessions have the zone UTC.
	condition := "s." + clock + " >= $2 AND s." + clock + " < $3 AND s." + clock + "::date = ANY($4)"
	return d.eachOf(ctx, kind, organization, condition, []any{Key{At: first}.literal(),
		Key{At: last.AddDate(0, 0, 1)}.literal(), "{" + strings.Join(dates, ",") + "}"}, visit)
}

// OfIDs calls visit with the records of one organization that have one of some ids, whether they break a rule or not.
func (d *Database) OfIDs(ctx context.Context, kind normalize.Kind, organization schema.OrganizationID, ids []uuid.UUID,
	visit func(*source.Record) error) error {
	if len(ids) == 0 {
		return nil
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	id := "s." + idColumn(kind)
	if !d.identity(kind).idIsUUID {
		// A text may write a UUID in capital letters.
		id = "lower(" + id + "::text)"
	}
	return d.eachOf(ctx, kind, organization, id+" = ANY($2)", []any{"{" + strings.Join(texts, ",") + "}"}, visit)
}

func (d *Database) each(ctx context.Context, kind normalize.Kind, where string, args []any,
	visit func(*source.Record) error) error {
	_, err := d.read(ctx, "", kind, where, args, func(r *source.Record, _ Key) error { return visit(r) })
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

// read reads every field as text, as in a file; PostgreSQL knows how to write its types.
func (d *Database) read(ctx context.Context, settings string, kind normalize.Kind, tail string, args []any,
	visit func(*source.Record, Key) error) (n int, err error) {
	fields := normalize.Fields(kind)
	var columns []string
	for _, field := range fields {
		columns = append(columns, text("s."+field, strings.HasSuffix(field, "_at")))
	}
	columns = append(columns, microsColumn)
	statement := "SELECT " + strings.Join(columns, ", ") + " FROM " + d.from(kind) + " WHERE " + tail
	record := source.Record{Raw: normalize.Raw{Kind: kind}}
	id := slices.Index(fields, idColumn(kind))
	policed := d.isPoliced(kind)
	err = d.reading(ctx, kind, settings, func(tx pgx.Tx) error {
		if err := d.unchanged(ctx, tx, kind); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			values := rows.RawValues()
			copy(record.Raw.Values[:], values[:len(fields)])
			at, err := parseAt(values[len(fields)])
			if err != nil {
				return fmt.Errorf("the updated_at of a %s record: %w", kind, err)
			}
			n++
			record.Line = n
			if err := visit(&record, Key{at, true, string(values[id]), schema.OrganizationID(values[0])}); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	switch {
	case errors.Is(err, errChanged):
		err = cmp.Or(d.Check(ctx), err)
	case lacksPrivilege(err) && !policed: // policies that let the role read all rows may be new
		if checked := d.Check(ctx); checked != nil {
			err = checked
		} else if d.isPoliced(kind) {
			err = errChanged
		}
	}
	return n, err
}

// microsColumn is updated_at in microseconds since 1970, which is what PostgreSQL keeps and numbers have exactly, or
// "too late", infinity, -infinity or NULL. One row must not fail the statement for all others.
const microsColumn = "CASE WHEN NOT isfinite(s.updated_at) THEN s.updated_at::text WHEN s.updated_at >= " + tooLate +
	" THEN 'too late' ELSE (extract(epoch FROM s.updated_at) * 1000000)::bigint::text END"

// text is an expression for a column as text. A time is RFC 3339; what that cannot write (infinity, years
// outside 1 to 9999) is as PostgreSQL writes it, so that the rules of a record refuse it. It is compared before the
// cast, which fails for some dates, and for some texts (Check lets a deleted_at be one where it is hardly seen). With a
// NULL beside it a column has the type that its domain is of.
func text(column string, isTime bool) string {
	if !isTime {
		return column + "::text"
	}
	return "CASE WHEN pg_typeof(coalesce(" + column + ", NULL)) <> 'text'::regtype AND " + column +
		" >= '0001-01-01 00:00:00Z' AND " + column + " < '10000-01-01 00:00:00Z' THEN to_char(" + column +
		`::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') ELSE ` + column + "::text END"
}
