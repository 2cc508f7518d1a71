// Package cells says which ClickHouse service has an organization. A cell is one service with everything of its
// organizations: records, rollup, keys, usage, audit. Each organization is in one cell, so that within a cell all is as
// in a single store.
//
// # Placement
//
// An organization's slot is the hash of its id modulo 256, and each slot is in one cell. The stores themselves say
// where: each has the rows of all slots in the table placement, and its own name there.
//
//  1. A name is stored before any slot is: a store that slots name, and which has no name, is not the one that they
//     were placed in, but a new one or one that was emptied. It is refused, because it would answer with nothing.
//  2. A store with another name than the file of cells gives it is refused: two addresses were exchanged.
//  3. Slots are placed once, when no store has any, by weight. All stores must be reached for that, so that none that
//     is placed otherwise is missed. If exactly one of them has records already, all slots are there.
//  4. From then on any one store says where every organization is. Adding a cell to the file places nothing there.
//  5. Two first starts at once, with different files, can place slots twice. Whoever reads that stops.
package cells

import (
	"fmt"

	"github.com/go-faster/city"

	"github.com/runlens/runlens/schema"
)

// Slots is the number of slots.
const Slots = 256

// SlotOf is the slot of an organization, from 0: cityHash64(organization_id) % 256 as ClickHouse computes it.
func SlotOf(organization schema.OrganizationID) int {
	return int(city.CH64([]byte(organization)) % Slots)
}

// A Placement is in which cell each slot is. It does not change.
type Placement struct{ cells [Slots]string }

// Of is the name of the cell of an organization.
func (p *Placement) Of(organization schema.OrganizationID) string {
	return p.cells[SlotOf(organization)]
}

// Count is how many slots are in a cell.
func (p *Placement) Count(cell string) (n int) {
	for _, name := range p.cells {
		if name == cell {
			n++
		}
	}
	return n
}

// dealt places slots in cells by weight: neighbours are in one cell, and no cell has more than one slot beyond its
// part.
func dealt(cells []Cell) *Placement {
	all := 0
	for _, c := range cells {
		all += c.Weight
	}
	p := &Placement{}
	slot, weight := 0, 0
	for _, c := range cells {
		weight += c.Weight
		for ; slot*all < weight*Slots; slot++ {
			p.cells[slot] = c.Name
		}
	}
	return p
}

// check refuses a placement in a cell that is not among those of the file.
func (p *Placement) check(cells []Cell) error {
	known := map[string]bool{}
	for _, c := range cells {
		known[c.Name] = true
	}
	for _, name := range p.cells {
		if !known[name] {
			return fmt.Errorf("organizations are in the cell %q, which the file of cells does not name", name)
		}
	}
	return nil
}
