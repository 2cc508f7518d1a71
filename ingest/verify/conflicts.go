package verify

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Conflict is the records of a part that the source sent in ways that contradict each other: runs under several
// created_at, attribution records with several contents or occurred_at. Each counts once (contract 4.20), so that they
// are no difference.
type Conflict struct {
	Organization schema.OrganizationID `json:"organization_id"`
	Kind         normalize.Kind        `json:"record"`
	Rows
}

const (
	// maxIDs bounds the ids of one statement that searches for records that moved.
	maxIDs = 100_000
	// tableIDs comes with a statement about some ids: as parameters they would make too long a URL.
	tableIDs = "ids"
)

// moved separates from extra rows those that do not count, because the store has their record under another clock: the
// next refresh of the rollup supersedes them.
func (o Options) moved(ctx context.Context, found faults) error {
	extras := map[Part]map[uuid.UUID]bool{}
	for g, rows := range found {
		for id, fault := range rows {
			if fault.way != extra || tables[g.Kind].clock == "" {
				continue
			}
			part := Part{g.Organization, g.Kind}
			if extras[part] == nil {
				extras[part] = map[uuid.UUID]bool{}
			}
			extras[part][id] = true
		}
	}
	for part, ids := range extras {
		for chunk := range slices.Chunk(slices.Collect(maps.Keys(ids)), maxIDs) {
			if err := o.movedOf(ctx, part, chunk, found); err != nil {
				return fmt.Errorf("search for %s records that moved: %w", part.Kind, err)
			}
		}
	}
	return nil
}

func (o Options) movedOf(ctx context.Context, part Part, ids []uuid.UUID, found faults) error {
	where := tables[part.Kind].id + " IN" + sql.In(sql.Select{Columns: []string{"id"}, From: sql.Sent(tableIDs)})
	superseded := sql.Select{
		Columns: []string{"run_id", "created_at AS clock"},
		From:    sql.Query(schema.SupersededRuns(sql.Table, schema.Among{Stored: where})),
	}
	if part.Kind == normalize.KindAttribution {
		superseded = sql.Select{
			Columns: []string{"id", "clock"}, From: sql.Query(schema.ConflictingAttributions(sql.Table, where)),
			Where: []string{"superseded"},
		}
	}
	wanted, err := ext.NewTable(tableIDs, ext.Column("id", "UUID"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := wanted.Append(id); err != nil {
			return err
		}
	}
	rows, err := o.Conn.Query(clickhouse.Context(ctx, clickhouse.WithExternalTable(wanted)),
		sql.Select{Columns: []string{"*", "toString(toDate32(clock))"}, From: sql.Query(superseded)}.String(),
		clickhouse.Named("organization", string(part.Organization)))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		var clock time.Time
		g := Group{Organization: part.Organization, Kind: part.Kind}
		if err := rows.Scan(&id, &clock, &g.Day); err != nil {
			return err
		}
		if fault, ok := found[g][id]; ok && fault.way == extra {
			fault.way = moved
			found[g][id] = fault
		}
	}
	return rows.Err()
}

// collapse takes records out of groups that a source has under another clock too, which counts instead, maybe in
// another group.
func (o Options) collapse(
	ctx context.Context, list *purged.List, groups []Group, wanted map[Group]versions, known *numbers,
) error {
	if o.Source.Unique() {
		return nil
	}
	counting := newVersions(known)
	for _, rows := range wanted {
		for id := range rows.rows {
			counting.rows[id] = newest{version: math.MinInt64} // before all versions
		}
	}
	h := newHasher(list)
	err := o.Source.Each(ctx, func(record *source.Record) error {
		r, err := readRow(h, record)
		if err != nil {
			return nil
		}
		if _, ok := counting.rows[known.identity(r.Group, r.id)]; ok {
			counting.add(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range groups {
		rows, number := wanted[g], known.group(g)
		for id := range rows.rows {
			if counting.rows[id].group != number {
				rows.drop(id)
				continue
			}
			rows.rows[id] = counting.rows[id]
			if others := counting.others[id]; others != nil {
				rows.others[id] = others
			}
		}
	}
	return nil
}

// conflicts are those that the store knows of, and the further ones of moved.
func (o Options) conflicts(ctx context.Context, further map[Part][]uuid.UUID) ([]Conflict, error) {
	known, err := ext.NewTable(tableIDs, ext.Column("organization", "String"), ext.Column("record", "String"),
		ext.Column("id", "UUID"))
	if err != nil {
		return nil, err
	}
	for part, ids := range further {
		for _, id := range ids {
			if err := known.Append(string(part.Organization), string(part.Kind), id); err != nil {
				return nil, err
			}
		}
	}
	rows, err := o.Conn.Query(
		clickhouse.Context(ctx, clickhouse.WithExternalTable(known)),
		readConflicts.String(),
		clickhouse.Named("most", int64(o.MaxIDs)),
		clickhouse.Named("organization", string(o.Organization)),
	)
	if err != nil {
		return nil, fmt.Errorf("search for conflicts: %w", err)
	}
	defer rows.Close()
	found := []Conflict{}
	for rows.Next() {
		var c Conflict
		var organization, kind string
		if err := rows.Scan(&organization, &kind, &c.Count, &c.IDs); err != nil {
			return nil, fmt.Errorf("search for conflicts: %w", err)
		}
		c.Organization, c.Kind = schema.OrganizationID(organization), normalize.Kind(kind)
		found = append(found, c)
	}
	return found, rows.Err()
}

// readConflicts selects the conflicts that the store knows of and those of an external table.
var readConflicts = sql.Select{
	Columns: []string{"organization", "record", "toInt64(uniqExact(id))",
		"arraySlice(arraySort(x -> toString(x), groupUniqArray(id)), 1, {most:Int64})"},
	From: sql.Query(sql.Union{
		{
			Columns: []string{"toString(organization_id) AS organization", "toString(kind) AS record", "id"},
			From:    verified(schema.TableConflicts),
		},
		{Columns: []string{"organization", "record", "id"}, From: sql.Sent(tableIDs)},
	}),
	Where: []string{"{organization:String} IN ('', organization)"},
	Group: []string{"organization", "record"}, Order: []string{"organization", "record"},
}
