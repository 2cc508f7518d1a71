package verify

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/ingest/source"
)

// A way in which a row differs.
type way int

const (
	missing way = iota // in the store
	stale              // in the store in an older version
	newer              // in the store in a newer version
	changed            // in the store in the same version with other content
	extra              // in the store only
	moved              // in the store only, where another clock of the record counts instead
)

// A fault is how a row differs, and the source's version of it, -1 where it has none.
type fault struct {
	way     way
	version int64
}

type rowFaults map[uuid.UUID]fault

type faults map[Group]rowFaults

func (f faults) add(g Group, id uuid.UUID, fault fault) {
	if f[g] == nil {
		f[g] = rowFaults{}
	}
	f[g][id] = fault
}

// compareGroups compares a share of the rows of some groups.
func (o Options) compareGroups(ctx context.Context, suspects []Difference, part share) (faults, error) {
	groups := make([]Group, len(suspects))
	wanted := make(map[Group]versions, len(suspects))
	known := newNumbers()
	for i, d := range suspects {
		groups[i], wanted[d.Group] = d.Group, newVersions(known)
	}
	list, err := purged.Read(ctx, o.Conn, nil)
	if err != nil {
		return nil, err
	}
	h := newHasher(list)
	err = o.Source.OfGroups(ctx, groups, func(record *source.Record) error {
		r, err := readRow(h, record)
		if rows, ok := wanted[r.Group]; ok && err == nil && part.has(r.id) {
			rows.add(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := o.collapse(ctx, list, groups, wanted, known); err != nil {
		return nil, err
	}
	found := faults{}
	for _, g := range groups {
		if err := o.compareRows(ctx, g, part, wanted[g], found); err != nil {
			return nil, err
		}
	}
	return found, o.moved(ctx, found)
}

// compareRows takes the store's rows of a share of a group out of the source's; what is left is missing.
func (o Options) compareRows(ctx context.Context, g Group, part share, rows versions, found faults) error {
	err := storeRows(ctx, o.Conn, g, func(stored row) {
		if !part.has(stored.id) {
			return
		}
		id := rows.identity(g, stored.id)
		wanted, ok := rows.rows[id]
		others := rows.others[id]
		rows.drop(id)
		switch {
		case !ok && !o.Subset:
			found.add(g, stored.id, fault{extra, -1})
		case !ok:
		case stored.version > wanted.version && !o.Subset:
			found.add(g, stored.id, fault{newer, wanted.version})
		case stored.version > wanted.version:
		case stored.version < wanted.version:
			found.add(g, stored.id, fault{stale, wanted.version})
		case stored.hash != wanted.hash && !slices.Contains(others, stored.hash):
			found.add(g, stored.id, fault{changed, wanted.version})
		}
	})
	for id, wanted := range rows.rows {
		found.add(g, id.id, fault{missing, wanted.version})
	}
	return err
}

// name adds which rows differ, up to most ids of each way, in the order of the ids. Those that moved do not.
func (d *Difference) name(rows rowFaults, most int) {
	ids := make([]uuid.UUID, 0, len(rows))
	for id := range rows {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	by := map[way]*Rows{missing: &d.Missing, stale: &d.Stale, newer: &d.Newer, changed: &d.Changed, extra: &d.Extra}
	for _, id := range ids {
		if r := by[rows[id].way]; r != nil {
			r.add(id, most)
		}
	}
	for _, r := range by {
		slices.SortFunc(r.IDs, compareIDs)
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// differs reports whether name has named something.
func (d *Difference) differs() bool {
	return d.Missing.Count+d.Stale.Count+d.Newer.Count+d.Changed.Count+d.Extra.Count > 0
}
