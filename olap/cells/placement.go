// Package cells says which ClickHouse service has an organization. A cell is one service with everything of its
// organizations: records, rollup, keys, usage, audit. Each organization is in one cell, so that within a cell all is as
// in a single store.
//
// # Placement
//
// An organization's slot is the hash of its id modulo 256, and each slot is in one cell. An organization that was moved
// alone is pinned: its own row counts before that of its slot. The stores themselves say where: each has the rows of
// all slots and pins in the table placement, and its own name there.
//
//  1. A name is stored before any slot is: a store that slots name, and which has no name, is not the one that they
//     were placed in, but a new one or one that was emptied. It is refused, because it would answer with nothing.
//  2. A store with another name than the file of cells gives it is refused: two addresses were exchanged.
//  3. Slots are placed once, when no store has any, by weight. All stores must be reached for that, so that none that
//     is placed otherwise is missed. If exactly one of them has records already, all slots are there.
//  4. From then on any one store says where every organization is. Adding a cell to the file places nothing there.
//  5. Two first starts at once, with different files, can place slots twice. Whoever reads that stops.
//
// # Moves
//
// Package move changes the placement. Of several rows the greatest revision counts. A row also has a state, which says
// what may be done in the store that has the row, and nowhere else:
//
//   - Whether an organization is in a cell, only the cell's own store says (Told.Reads, Told.Writes). What others say
//     finds the cell to ask. A store that says so, while another one says by a greater revision that it is elsewhere,
//     was restored: nobody reads it there (Directory.Here), and servers tell it (Directory.Remind).
//   - Who answers from a cell has read the cell's own rows after the instant that lies Lease before the answer is
//     given. It looks when the answer is there: a process that was paused in between reads the rows again.
//   - Who stores something in a cell reads the cell's own rows before and after. Only if the same revision lets it
//     write both times, what it stored is acknowledged. Revisions only grow, so that nothing happened in between.
package cells

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/city"

	"github.com/runlens/runlens/schema"
)

// Slots is the number of slots.
const Slots = 256

// Lease is how long a process relies on what a cell's own store said, from the instant at which it began to read that.
// It is not less than http/auth relies on what it read of a key.
const Lease = 3 * time.Second

// SlotOf is the slot of an organization, from 0: cityHash64(organization_id) % 256 as ClickHouse computes it.
func SlotOf(organization schema.OrganizationID) int { return int(Hash(organization) % Slots) }

// Hash is cityHash64(organization_id) as ClickHouse computes it.
func Hash(organization schema.OrganizationID) uint64 { return city.CH64([]byte(organization)) }

// A Subject is what is placed and moved: a slot, or one organization.
type Subject struct {
	organization schema.OrganizationID // empty for a slot
	slot         int
}

const (
	slotPrefix         = "slot:"
	organizationPrefix = "organization:"
)

// SlotSubject and OrganizationSubject are the subjects of a slot and of an organization.
func SlotSubject(slot int) Subject { return Subject{slot: slot} }

// OrganizationSubject is an organization by itself, whatever its slot is.
func OrganizationSubject(organization schema.OrganizationID) Subject {
	return Subject{organization: organization, slot: SlotOf(organization)}
}

// ParseSubject reads what String prints, or an organization.
func ParseSubject(text string) (Subject, error) {
	if number, ok := strings.CutPrefix(text, slotPrefix); ok {
		if slot, err := strconv.Atoi(number); err == nil && slot >= 0 && slot < Slots {
			return SlotSubject(slot), nil
		}
	}
	organization, err := schema.ParseOrganizationID(strings.TrimPrefix(text, organizationPrefix))
	if err != nil {
		return Subject{}, fmt.Errorf("%q is neither an organization nor a slot, such as slot:17", text)
	}
	return OrganizationSubject(organization), nil
}

// String is the subject as the stores have it.
func (s Subject) String() string {
	if s.organization != "" {
		return organizationPrefix + string(s.organization)
	}
	return slotPrefix + strconv.Itoa(s.slot)
}

// Organization is the only one of the subject; empty for a slot.
func (s Subject) Organization() schema.OrganizationID { return s.organization }

// Slot is the slot, or that of the organization.
func (s Subject) Slot() int { return s.slot }

// Overlaps reports whether two subjects may have an organization in common.
func (s Subject) Overlaps(other Subject) bool {
	return s.slot == other.slot &&
		(s.organization == "" || other.organization == "" || s.organization == other.organization)
}

// A State is what may be done of a subject in the store that has the row.
type State string

// The states of a subject in a store (package move has the order). Where it is in the cell, all but Switched and
// Leaving answer questions; only Open and Moving let anybody write.
const (
	Open     State = "open"
	Moving   State = "moving"   // it is being copied to another cell
	Closing  State = "closing"  // nothing that is stored now is acknowledged
	Arriving State = "arriving" // it is being copied here, where nobody reads it
	Switched State = "switched" // it is read in the new cell, and not written yet
	Leaving  State = "leaving"  // it is in the new cell, and being purged here
)

// A Place is a row of the table placement.
type Place struct {
	Cell     string
	Revision uint64
	State    State
	To       string // of a move that is under way: the cell where it goes, or came to
	Mover    uint64 // the random number of the command that moves it
}

// A Placement is in which cell each slot and each pinned organization is. It does not change.
type Placement struct{ places map[Subject]Place }

// Own is where a subject itself is; the zero Place where nothing says so.
func (p Placement) Own(s Subject) Place { return p.places[s] }

// Place is where a subject is; of an organization that is not pinned, where its slot is.
func (p Placement) Place(s Subject) Place {
	at, ok := p.places[s]
	if !ok && s.organization != "" {
		return p.places[SlotSubject(s.slot)]
	}
	return at
}

// Moved reports whether an organization may have been in another cell before.
func (p Placement) Moved(organization schema.OrganizationID) bool {
	return p.Place(OrganizationSubject(organization)).Revision > first
}

// Of is the name of the cell of an organization.
func (p Placement) Of(organization schema.OrganizationID) string {
	return p.Place(OrganizationSubject(organization)).Cell
}

// Count is how many slots are in a cell.
func (p Placement) Count(cell string) int { return len(p.SlotsIn(cell)) }

// SlotsIn are the slots that are in a cell, ascending.
func (p Placement) SlotsIn(cell string) (slots []Subject) {
	for slot := range Slots {
		if s := SlotSubject(slot); p.places[s].Cell == cell {
			slots = append(slots, s)
		}
	}
	return slots
}

// PinnedIn are the organizations that are in a cell by themselves, in order.
func (p Placement) PinnedIn(cell string) []Subject {
	return p.sorted(func(s Subject, at Place) bool { return s.organization != "" && at.Cell == cell })
}

// sorted are the subjects of which something is true, in the order of their texts.
func (p Placement) sorted(is func(Subject, Place) bool) (subjects []Subject) {
	for s, at := range p.places {
		if is(s, at) {
			subjects = append(subjects, s)
		}
	}
	slices.SortFunc(subjects, func(a, b Subject) int { return strings.Compare(a.String(), b.String()) })
	return subjects
}

// has reports whether anything is in a cell.
func (p Placement) has(cell string) bool { return p.Count(cell) > 0 || len(p.PinnedIn(cell)) > 0 }

// with is the placement with what another one says that is newer; the same one if nothing is.
func (p *Placement) with(other Placement) *Placement {
	next := p
	for s, at := range other.places {
		if at.Revision <= next.places[s].Revision {
			continue
		}
		if next == p {
			next = &Placement{map[Subject]Place{}}
			maps.Copy(next.places, p.places)
		}
		next.places[s] = at
	}
	return next
}

// corrects reports whether something is elsewhere than a store says.
func (p Placement) corrects(told Told) bool {
	for s, at := range p.places {
		if own := told.Own(s); at.Revision > own.Revision && at.Cell != own.Cell {
			return true
		}
	}
	return false
}

// Merged is where everything is by what several stores say, of which some may not have the newest rows.
func Merged(told ...Told) *Placement {
	p := &Placement{}
	for _, t := range told {
		p = p.with(t.Placement)
	}
	return p
}

// dealt places slots in cells by weight: neighbours are in one cell, and no cell has more than one slot beyond its
// part.
func dealt(cells []Cell) *Placement {
	all := 0
	for _, c := range cells {
		all += c.Weight
	}
	p := &Placement{map[Subject]Place{}}
	slot, weight := 0, 0
	for _, c := range cells {
		weight += c.Weight
		for ; slot*all < weight*Slots; slot++ {
			p.places[SlotSubject(slot)] = Place{Cell: c.Name, Revision: first, State: Open}
		}
	}
	return p
}

// check refuses a placement in a cell that is not among those of the file.
func (p Placement) check(cells []Cell) error {
	for _, at := range p.places {
		if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Name == at.Cell }) {
			return fmt.Errorf("organizations are in the cell %q, which the file of cells does not name", at.Cell)
		}
	}
	return nil
}
