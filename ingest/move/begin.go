package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// find finds the old cell, and refuses what can't be moved now.
func (m *mover) find(ctx context.Context) error {
	told, all := map[string]cells.Told{}, []cells.Told{}
	for name, conn := range m.o.Cells {
		said, err := cells.Read(ctx, conn)
		if err != nil {
			return fmt.Errorf("cell %s: %w", name, err)
		}
		told[name], all = said, append(all, said)
		own := said.Own(m.subject)
		m.newest = max(m.newest, own.Revision)
		m.resumed = m.resumed || own.To == m.to.name
	}
	for _, said := range told {
		own := said.Own(m.subject)
		// A command that told the new cell, and came too late to tell the old one, has begun nothing.
		late := own.State == cells.Arriving && told[own.Cell].Own(m.subject).To != own.To
		if own.Revision > 0 && own.State != cells.Open && own.To != m.to.name && !late {
			return fmt.Errorf("%s is being moved to the cell %s: run that again first", m.subject, own.To)
		}
		if err := m.overlaps(said); err != nil {
			return err
		}
	}
	newest := cells.Merged(all...).Place(m.subject)
	m.from.name = newest.Cell
	if newest.Cell == m.to.name { // unless the old cell has not been purged
		m.from.name = ""
		for name, said := range told {
			if at := said.Own(m.subject); name != m.to.name && at.State != cells.Open && at.To == m.to.name {
				m.from.name = name
			}
		}
		if m.from.name == "" {
			return ErrThere
		}
	}
	if m.from.conn = m.o.Cells[m.from.name]; m.from.conn == nil || m.to.conn == nil {
		return fmt.Errorf("the cells %s and %s are both needed, and not both can be reached", m.from.name, m.to.name)
	}
	m.from.at, m.to.at = told[m.from.name].Own(m.subject), told[m.to.name].Own(m.subject)
	m.slot = told[m.from.name].Own(cells.SlotSubject(m.subject.Slot()))
	return nil
}

// overlaps refuses a subject some of whose organizations are being moved with another one. An organization whose move
// has begun is pinned, so that a slot's move leaves it alone: it goes on first where both ended early.
func (m *mover) overlaps(told cells.Told) error {
	if m.resumed && m.subject.Organization() != "" {
		return nil
	}
	for _, other := range told.UnderWay() {
		if other != m.subject && other.Overlaps(m.subject) {
			return fmt.Errorf("%s is being moved to the cell %s: run that again first", other, told.Own(other).To)
		}
	}
	return nil
}

// begin is 1. A subject that was closed by a command that died stays so for a Lease, in which whoever read that it was
// switched, before that was rolled back, has answered.
func (m *mover) begin(ctx context.Context) error {
	if err := m.pin(ctx); err != nil {
		return err
	}
	next := m.place(m.from.name, cells.Arriving)
	if err := m.to.become(ctx, m.subject, next); err != nil {
		return err
	}
	if m.resumed {
		if err := snapshot.Pause(ctx, m.o.Lease); err != nil {
			return err
		}
	}
	next = m.place(m.from.name, cells.Moving)
	if err := m.from.become(ctx, m.subject, next); err != nil {
		return err
	}
	told, err := cells.Read(ctx, m.from.conn)
	if err != nil {
		return err
	}
	if overlapping := m.overlaps(told); overlapping != nil { // begun at the same time
		return errors.Join(overlapping, m.from.become(ctx, m.subject, m.place(m.from.name, cells.Open)),
			m.to.become(ctx, m.subject, m.place(m.from.name, cells.Open)))
	}
	if err := m.tellPins(ctx, told); err != nil {
		return err
	}
	if err := m.clear(ctx); err != nil {
		return err
	}
	return m.o.Reached(Begun)
}

// pin gives an organization that is where its slot is a row of its own there, as long as the slot's row is the one that
// was found: a slot that is being moved keeps the organizations that it began with, and one that was moved has them
// elsewhere.
func (m *mover) pin(ctx context.Context) error {
	if m.subject.Organization() == "" || m.from.at.Revision > 0 {
		return nil
	}
	slot := cells.SlotSubject(m.subject.Slot())
	if m.slot.Cell != m.from.name {
		return fmt.Errorf("the cell %s says itself that %s is in the cell %s", m.from.name, slot, m.slot.Cell)
	}
	err := m.from.becomeWhile(ctx, m.subject, m.place(m.from.name, cells.Open), slot, m.slot.Revision)
	if !errors.Is(err, ErrTaken) {
		return err
	}
	told, readErr := cells.Read(ctx, m.from.conn)
	if readErr == nil && told.Own(slot).Revision != m.slot.Revision {
		return fmt.Errorf("%s is in %s, which is being moved, or was moved meanwhile: run this again afterwards",
			m.subject, slot)
	}
	return err
}

// tellPins tells the new cell which organizations of the slot are not in it: those that are pinned, as the old cell
// knows. It was read after that had been told that the slot is moving, so that none is pinned there any more (pin).
func (m *mover) tellPins(ctx context.Context, told cells.Told) error {
	if m.subject.Organization() != "" {
		return nil
	}
	known, err := cells.Read(ctx, m.to.conn)
	if err != nil {
		return err
	}
	for _, organization := range told.Pins(m.subject.Slot()) {
		pin := cells.OrganizationSubject(schema.OrganizationID(organization))
		at := told.Own(pin)
		if at.Revision <= known.Own(pin).Revision {
			continue
		}
		at = cells.Place{Cell: at.Cell, Revision: at.Revision, State: cells.Open}
		if err := cells.Write(ctx, m.to.conn, pin, at); err != nil {
			return err
		}
	}
	return nil
}
