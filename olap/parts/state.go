package parts

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/elapsed"
)

// A State is the parts of a table at a moment. Of the zero State nothing is known.
type State struct {
	listed  bool
	parts   []part
	table   uuid.UUID // the nil one where it is not known
	started time.Time // when ClickHouse was started
}

// A part is one of a table's. By its name, it has the rows of the inserts whose block numbers are from first to last,
// both inclusive, as a mutation left them; 0 for none.
type part struct {
	name, hash            string // the hash is of all its files
	rows                  uint64
	named                 bool // in the way that is known here
	first, last, mutation int64
}

// A partRow is what ClickHouse lists of a part.
type partRow struct {
	Name   string    `ch:"name"`
	Path   string    `ch:"path"`
	Hash   string    `ch:"hash_of_all_files"`
	Rows   uint64    `ch:"rows"`
	Now    time.Time `ch:"now"`
	Uptime uint32    `ch:"uptime"`
}

// partName is that of a part of the only partition. The third number is how often it was merged.
var partName = regexp.MustCompile(`^all_(\d+)_(\d+)_\d+(?:_(\d+))?$`)

// stateOf is what a list of parts says.
func stateOf(rows []partRow) State {
	s := State{listed: true}
	for _, row := range rows {
		p := part{name: row.Name, hash: row.Hash, rows: row.Rows}
		if name := partName.FindStringSubmatch(row.Name); name != nil {
			p.named = true
			p.first, _ = strconv.ParseInt(name[1], 10, 64)
			p.last, _ = strconv.ParseInt(name[2], 10, 64)
			p.mutation, _ = strconv.ParseInt(name[3], 10, 64)
		}
		s.parts = append(s.parts, p)
		// The directory of a table has its UUID as name, but in databases of the deprecated engine.
		s.table, _ = uuid.Parse(path.Base(path.Dir(path.Clean(row.Path))))
		s.started = row.Now.Add(-time.Duration(row.Uptime) * time.Second)
	}
	slices.SortFunc(s.parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	return s
}

// since compares a state with an earlier one, and returns the parts in which all rows are that were added. It reports
// false if it cannot tell: rows may have been removed or changed as well, or be those of another table.
//
//  1. Both are of one table and of one start of ClickHouse. A restored table is another one, and after a loss of power
//     block numbers can be used again. Without parts nothing shows which table it is, and nothing has to where there
//     were no rows either.
//  2. A part of the same name and hash has the same rows.
//  3. A part that covers earlier ones without a gap was merged from them: every insert has a block number of its own,
//     so it has their rows and no others.
//  4. In any other part there may be rows of inserts that were not there. All of its rows are taken for added.
//  5. A mutation removes or changes rows, also some that came in between. Every part that is older gets its number.
//  6. An earlier part that is in none of the new ones was removed with its rows.
func (s State) since(earlier State) (added []part, ok bool) {
	if earlier.listed && len(earlier.parts) == 0 && len(s.parts) == 0 {
		return nil, true
	}
	if s.table == uuid.Nil || s.table != earlier.table || !elapsed.SameStart(s.started, earlier.started) {
		return nil, false
	}
	covered := 0 // of the earlier parts
	for _, p := range s.parts {
		same := slices.IndexFunc(earlier.parts, func(e part) bool { return e.name == p.name })
		if same >= 0 {
			if earlier.parts[same].hash != p.hash {
				return nil, false
			}
			covered++
			continue
		}
		sources := earlier.within(p)
		if !p.named || p.rows == 0 || p.mutated(sources) {
			return nil, false
		}
		covered += len(sources)
		if !p.covers(sources) {
			added = append(added, p)
		}
	}
	return added, covered == len(earlier.parts)
}

// within are the parts of a state whose blocks another part has, in the order of their numbers.
func (s State) within(other part) (parts []part) {
	for _, p := range s.parts {
		if p.named && other.first <= p.first && p.last <= other.last {
			parts = append(parts, p)
		}
	}
	return parts
}

// covers reports whether a part has the blocks of sources, in the order of their numbers, and no others.
func (p part) covers(sources []part) bool {
	next := p.first
	for _, source := range sources {
		if source.first != next {
			return false
		}
		next = source.last + 1
	}
	return next == p.last+1
}

// mutated reports whether a mutation made a part of its sources, and not merges alone. Those of a merge have its
// mutation already or are younger: blocks and mutations are numbered together.
func (p part) mutated(sources []part) bool {
	mutation := int64(0)
	for _, source := range sources {
		if source.mutation != p.mutation && source.first <= p.mutation {
			return true
		}
		mutation = max(mutation, source.mutation)
	}
	return p.mutation != mutation
}
