// Package verify proves that the store has what a source has: for every organization, kind of
// record and UTC day it compares how many rows there are and a checksum of their normalized fields,
// computed here from the source and in ClickHouse from the store; where they differ it names the ids.
package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// Options say what Compare does.
type Options struct {
	Source       Source
	Conn         driver.Conn
	Organization schema.OrganizationID // the only one to compare; empty for all
	// Owns says which organizations the store is to have, of all that the source has; nil for all.
	Owns func(schema.OrganizationID) bool
	// the source has a part: what only the store has, and newer versions there, are right
	Subset bool
	// RecheckAfter is for a source that changes meanwhile: rows that differ are read again so much
	// later, and count only if they differ still and have not changed in between. 0 for files.
	RecheckAfter time.Duration
	MaxIDs       int              // named ids of a kind of difference in a group
	Progress     func(read int64) // records of the source; nil for none
}

// A Report says what Compare found.
type Report struct {
	Read     int64 `json:"read"` // records of the source, repeats and older versions included
	Rejected int64 `json:"rejected"`
	Purged   int64 `json:"purged"` // records of purged people that stay out, which were not compared
	// Groups are the organizations, kinds and days that were compared. 0 proves nothing.
	Groups      int          `json:"groups"`
	Rows        int64        `json:"rows"` // of the source, versions collapsed
	Differences []Difference `json:"differences"`
	Conflicts   []Conflict   `json:"conflicts"` // which are no differences

	Counts map[Part]Count `json:"-"` // of everything that source or store have
}

// A Part is the records of one kind of an organization.
type Part struct {
	Organization schema.OrganizationID
	Kind         normalize.Kind
}

// A Count is how many rows a part has, versions collapsed.
type Count struct{ Source, Store int64 }

// A Difference is a group that differs, with the numbers of its rows and some of their ids.
type Difference struct {
	Group
	Source  Sum  `json:"source"`
	Store   Sum  `json:"store"`
	Missing Rows `json:"missing"` // in the store
	Stale   Rows `json:"stale"`   // in the store in an older version
	Newer   Rows `json:"newer"`   // in the store in a newer version
	Changed Rows `json:"changed"` // in the store in the same version with other content
	Extra   Rows `json:"extra"`   // in the store only
}

// Rows are rows that differ in one way.
type Rows struct {
	Count int64       `json:"count"`
	IDs   []uuid.UUID `json:"ids,omitzero"` // up to Options.MaxIDs of them
}

func (r *Rows) add(id uuid.UUID, most int) {
	r.Count++
	if len(r.IDs) < most {
		r.IDs = append(r.IDs, id)
	}
}

// Compare compares the store with a source. Differences are no error.
func Compare(ctx context.Context, o Options) (Report, error) {
	progress := o.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	list, err := purged.Read(ctx, o.Conn, nil)
	if err != nil {
		return Report{}, err
	}
	source, err := sumUp(ctx, o, list, maxHeld, progress)
	report := Report{Read: source.read, Rejected: source.rejected, Purged: source.purged,
		Differences: []Difference{}, Counts: map[Part]Count{}}
	if err != nil {
		return report, err
	}
	stored := map[Group]Sum{}
	for _, kind := range normalize.Kinds {
		if err := storeSums(ctx, o.Conn, kind, o.Organization, stored); err != nil {
			return report, err
		}
	}
	if o.Owns != nil { // of organizations that are being moved, two stores have rows
		maps.DeleteFunc(stored, func(g Group, _ Sum) bool { return !o.Owns(g.Organization) })
	}
	var suspects []Difference
	for g, sum := range source.sums {
		report.Groups++
		report.Rows += sum.Count
		report.count(g, Count{Source: sum.Count})
		if stored[g] != sum {
			suspects = append(suspects, Difference{Group: g, Source: sum, Store: stored[g]})
		}
	}
	for g, sum := range stored {
		report.count(g, Count{Store: sum.Count})
		if _, ok := source.sums[g]; !ok && !o.Subset {
			report.Groups++
			suspects = append(suspects, Difference{Group: g, Store: sum})
		}
	}
	slices.SortFunc(suspects, compareGroups)
	further := map[Part][]uuid.UUID{}
	for len(suspects) > 0 {
		n, bits := together(suspects, maxExplained)
		for value := range uint64(1) << bits {
			if err := o.explain(ctx, suspects[:n], share{bits, value}, further); err != nil {
				return report, err
			}
		}
		for _, d := range suspects[:n] {
			if d.differs() {
				report.Differences = append(report.Differences, d)
			}
		}
		suspects = suspects[n:]
	}
	report.Conflicts, err = o.conflicts(ctx, further)
	return report, err
}

func (r *Report) count(g Group, more Count) {
	part := Part{g.Organization, g.Kind}
	c := r.Counts[part]
	r.Counts[part] = Count{c.Source + more.Source, c.Store + more.Store}
}

func compareGroups(a, b Difference) int {
	return cmp.Or(strings.Compare(string(a.Organization), string(b.Organization)),
		strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Day, b.Day))
}

// maxExplained bounds the rows of a comparison row by row, of which the source's are held twice, and differences too.
// Tests change it.
var maxExplained int64 = maxHeld / 4

// together is how many groups, of which one may have more than most rows, can be explained at a time in bounded memory,
// and how many bits a share of their ids is to have for that.
func together(suspects []Difference, most int64) (n int, bits uint) {
	var rows int64
	for _, d := range suspects {
		more := max(d.Source.Count, d.Store.Count)
		if rows+more > most && n > 0 {
			break
		}
		rows += more
		n++
	}
	for ; rows>>bits > most; bits++ {
	}
	return n, bits
}

// explain reads a share of the rows of some groups and names those that do differ. Rows that moved are added to
// further.
func (o Options) explain(
	ctx context.Context, suspects []Difference, part share, further map[Part][]uuid.UUID,
) error {
	differing, err := o.compareGroups(ctx, suspects, part)
	if err != nil || len(differing) == 0 {
		return err
	}
	if o.RecheckAfter > 0 {
		if snapshot.Pause(ctx, o.RecheckAfter) != nil {
			return ctx.Err()
		}
		var again []Difference
		for _, d := range suspects {
			if differing[d.Group] != nil {
				again = append(again, d)
			}
		}
		now, err := o.compareGroups(ctx, again, part)
		if err != nil {
			return err
		}
		differing = still(differing, now)
	}
	for i := range suspects {
		d := &suspects[i]
		rows := differing[d.Group]
		of := Part{d.Organization, d.Kind}
		for id, fault := range rows {
			if fault.way == moved {
				further[of] = append(further[of], id)
			}
		}
		d.name(rows, o.MaxIDs)
	}
	return nil
}

// still returns the rows that differ now as they did before. That a stored row is no longer in the
// source is only certain when the source was read after the store.
func still(before, now faults) faults {
	both := faults{}
	for g, rows := range now {
		for id, fault := range rows {
			if earlier, ok := before[g][id]; ok && earlier.version == fault.version {
				both.add(g, id, fault)
			}
		}
	}
	return both
}
