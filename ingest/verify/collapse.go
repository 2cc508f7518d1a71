package verify

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// maxHeld bounds the rows that are held in memory at a time, about 150 bytes each. A source with more
// is read several times, a share of the ids each time.
const maxHeld = 1_000_000

type identity struct {
	organization schema.OrganizationID
	kind         normalize.Kind
	id           uuid.UUID
}

// A newest is what a source says of an identity: its newest version.
type newest struct {
	row
	// others are the hashes of rows of the same version with other content. One of them wins in
	// the store (contract 4.16), and any of them is right here.
	others []uint64
}

// versions collapses rows as the store does.
type versions map[identity]newest

func (v versions) add(r row) {
	id := identity{r.Organization, r.Kind, r.id}
	known, ok := v[id]
	switch {
	case !ok || r.version > known.version:
		v[id] = newest{row: r}
	case r.version == known.version && r.clock != known.clock:
		// Of an attribution record the one that comes first counts; it has no rank.
		if r.Kind == normalize.KindRun && cmp.Or(cmp.Compare(r.rank, known.rank), cmp.Compare(r.clock, known.clock)) > 0 {
			v[id] = newest{row: r}
		}
	case r.version == known.version && r.hash != known.hash && !slices.Contains(known.others, r.hash):
		known.others = append(known.others, r.hash)
		known.rank = max(known.rank, r.rank)
		v[id] = known
	}
}

// A share is the ids whose lowest bits have a value.
type share struct {
	bits  uint
	value uint32
}

func (s share) has(id uuid.UUID) bool {
	// The last bytes of a UUID are random in all of its versions.
	return binary.BigEndian.Uint32(id[12:])&(1<<s.bits-1) == s.value
}

// sourceTotals is what one reading of a source gives.
type sourceTotals struct {
	read, rejected int64
	sums           map[Group]Sum
	ambiguous      map[Group]bool // groups with a row of which one of several contents wins
}

func (t *sourceTotals) add(n newest) {
	sum := t.sums[n.Group]
	t.sums[n.Group] = Sum{sum.Count + 1, sum.Hash + n.hash}
	if n.others != nil {
		t.ambiguous[n.Group] = true
	}
}

// sumUp reads a source, several times if need be.
func sumUp(
	ctx context.Context, s Source, organization schema.OrganizationID, held int, progress func(read int64),
) (sourceTotals, error) {
	t := sourceTotals{sums: map[Group]Sum{}, ambiguous: map[Group]bool{}}
	h := newHasher()
	for open, first := []share{{}}, true; len(open) > 0; first = false {
		mine := open[0]
		open = open[1:]
		rows := versions{}
		err := s.Each(ctx, func(record *source.Record) error {
			if first {
				t.read++
				progress(t.read)
			}
			r, err := readRow(h, record)
			if err != nil {
				if first {
					t.rejected++
				}
				return nil
			}
			switch {
			case organization != "" && r.Organization != organization:
				return nil
			case s.Unique():
				t.add(newest{row: r})
				return nil
			case !mine.has(r.id):
				return nil
			}
			rows.add(r)
			for len(rows) > held {
				mine.bits++
				open = append(open, share{mine.bits, mine.value | 1<<(mine.bits-1)})
				for id := range rows {
					if !mine.has(id.id) {
						delete(rows, id)
					}
				}
			}
			return nil
		})
		if err != nil {
			return t, err
		}
		for _, n := range rows {
			t.add(n)
		}
	}
	return t, nil
}

func readRow(h *hasher, record *source.Record) (row, error) {
	if record.Fault != nil {
		return row{}, record.Fault
	}
	return h.row(&record.Raw)
}
