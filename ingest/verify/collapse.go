package verify

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// maxHeld bounds the rows that are held in memory at a time, about 110 bytes each. A source with more
// is read several times, a share of the ids each time.
const maxHeld = 1_000_000

// An identity is a record of a part, which has a number.
type identity struct {
	part uint32
	id   uuid.UUID
}

// A newest is what a source says of an identity: its newest version. There are millions of them, without pointers.
type newest struct {
	group   uint32 // its number
	version int64  // these as in row
	rank    uint64
	clock   int64
	hash    uint64
}

// numbers are those of groups and parts.
type numbers struct {
	groups map[Group]uint32
	named  []Group // by number
	parts  map[Part]uint32
}

func newNumbers() *numbers { return &numbers{groups: map[Group]uint32{}, parts: map[Part]uint32{}} }

func (n *numbers) group(g Group) uint32 {
	number, ok := n.groups[g]
	if !ok {
		number = uint32(len(n.named))
		n.groups[g], n.named = number, append(n.named, g)
	}
	return number
}

func (n *numbers) identity(g Group, id uuid.UUID) identity {
	part := Part{g.Organization, g.Kind}
	number, ok := n.parts[part]
	if !ok {
		number = uint32(len(n.parts))
		n.parts[part] = number
	}
	return identity{number, id}
}

// versions collapses rows as the store does.
type versions struct {
	*numbers
	rows map[identity]newest
	// others are the hashes of rows of the same version with other content. One of them wins in
	// the store (contract 4.16), and any of them is right here.
	others map[identity][]uint64
}

func newVersions(n *numbers) versions {
	return versions{n, map[identity]newest{}, map[identity][]uint64{}}
}

func (v versions) add(r row) {
	id := v.identity(r.Group, r.id)
	known, ok := v.rows[id]
	switch {
	case !ok || r.version > known.version:
		v.put(id, r)
	case r.version == known.version && r.clock != known.clock:
		// Of an attribution record the one that comes first counts; it has no rank.
		if r.Kind == normalize.KindRun && cmp.Or(cmp.Compare(r.rank, known.rank), cmp.Compare(r.clock, known.clock)) > 0 {
			v.put(id, r)
		}
	case r.version == known.version && r.hash != known.hash && !slices.Contains(v.others[id], r.hash):
		v.others[id] = append(v.others[id], r.hash)
		known.rank = max(known.rank, r.rank)
		v.rows[id] = known
	}
}

func (v versions) put(id identity, r row) {
	v.rows[id] = newest{v.group(r.Group), r.version, r.rank, r.clock, r.hash}
	delete(v.others, id)
}

func (v versions) drop(id identity) {
	delete(v.rows, id)
	delete(v.others, id)
}

// A share is the ids of whose hash the lowest bits have a value. The ids themselves may be alike in any of their bits.
type share struct {
	bits  uint
	value uint64
}

var shareSeed = maphash.MakeSeed()

func (s share) has(id uuid.UUID) bool {
	return maphash.Comparable(shareSeed, id)&(1<<s.bits-1) == s.value
}

// sourceTotals is what one reading of a source gives.
type sourceTotals struct {
	read, rejected int64
	purged         int64 // records that stay out because their person was purged
	sums           map[Group]Sum
}

func (t *sourceTotals) add(g Group, hash uint64) {
	sum := t.sums[g]
	t.sums[g] = Sum{sum.Count + 1, sum.Hash + hash}
}

// sumUp reads a source, several times if need be.
func sumUp(
	ctx context.Context, o Options, list *purged.List, held int, progress func(read int64),
) (sourceTotals, error) {
	t, s := sourceTotals{sums: map[Group]Sum{}}, o.Source
	h := newHasher(list)
	for open, first := []share{{}}, true; len(open) > 0; first = false {
		mine := open[0]
		open = open[1:]
		rows := newVersions(newNumbers())
		err := s.Each(ctx, func(record *source.Record) error {
			if o.Owns != nil && !o.Owns(schema.OrganizationID(record.Raw.Values[0])) {
				return nil
			}
			if first {
				t.read++
				progress(t.read)
			}
			r, err := readRow(h, record)
			if err != nil {
				switch {
				case !first:
				case errors.Is(err, errPurged):
					t.purged++
				default:
					t.rejected++
				}
				return nil
			}
			switch {
			case o.Organization != "" && r.Organization != o.Organization:
				return nil
			case s.Unique():
				t.add(r.Group, r.hash)
				return nil
			case !mine.has(r.id):
				return nil
			}
			rows.add(r)
			for len(rows.rows) > held {
				mine.bits++
				open = append(open, share{mine.bits, mine.value | 1<<(mine.bits-1)})
				for id := range rows.rows {
					if !mine.has(id.id) {
						rows.drop(id)
					}
				}
			}
			return nil
		})
		if err != nil {
			return t, err
		}
		for _, n := range rows.rows {
			t.add(rows.named[n.group], n.hash)
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
