package cells

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrUnplaced is returned when no store says where organizations are, and not all of them were reached.
var ErrUnplaced = errors.New("nothing is placed in cells yet: the first start needs all of them")

// ErrUnknownCell is returned where an organization is in a cell that the file of cells does not name.
var ErrUnknownCell = errors.New("organizations were moved to a cell that the file of cells, as it was read, does not " +
	"name: start again with a file that names it")

// ErrMisplaced is in errors that say themselves what to do.
var ErrMisplaced = errors.New("the wrong store")

// misplaced is an ErrMisplaced with a text of its own.
type misplaced string

func (m misplaced) Error() string        { return string(m) }
func (m misplaced) Is(target error) bool { return target == ErrMisplaced }

// Find returns where organizations are, by what the stores say that were reached, by the names of their cells. Where
// none says anything it places them. The error is ErrUnplaced if that needs stores that were not reached.
func Find(ctx context.Context, cells []Cell, reached map[string]driver.Conn) (*Placement, error) {
	for {
		p, err := found(ctx, reached)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p, p.check(cells)
		}
		if len(reached) < len(cells) {
			return nil, ErrUnplaced
		}
		if err := placeFirst(ctx, cells, reached); err != nil {
			return nil, err
		}
	}
}

// found is where the slots are; nil if no store says so.
func found(ctx context.Context, reached map[string]driver.Conn) (*Placement, error) {
	p := &Placement{}
	for _, conn := range reached {
		told, err := Read(ctx, conn)
		if err != nil {
			return nil, err
		}
		for subject, at := range told.places {
			if known := p.Own(subject); known.Revision == at.Revision && known.Cell != at.Cell {
				return nil, twice(subject.String(), []string{known.Cell, at.Cell})
			}
		}
		p = p.with(told.Placement)
	}
	if len(p.places) == 0 {
		return nil, nil
	}
	for slot := range Slots {
		if p.Own(SlotSubject(slot)).Cell == "" {
			return nil, fmt.Errorf("no cell says where slot %d is: the table placement is damaged", slot)
		}
	}
	return p, nil
}

// placeFirst places all slots, which no store has yet.
func placeFirst(ctx context.Context, cells []Cell, reached map[string]driver.Conn) error {
	var filled []string
	for _, c := range cells {
		s, err := Read(ctx, reached[c.Name])
		if err == nil && s.name != "" && s.name != c.Name {
			err = exchanged(c.Name, s.name)
		}
		if err != nil {
			return err
		}
		has, err := hasRecords(ctx, reached[c.Name])
		if err != nil {
			return err
		}
		if has {
			filled = append(filled, c.Name)
		}
	}
	p := dealt(cells)
	switch len(filled) {
	case 0:
	case 1:
		p = dealt([]Cell{{Name: filled[0], Weight: 1}})
	default:
		return fmt.Errorf("the cells %s have records, and none says which organizations belong where: start with at most "+
			"one store that has records", strings.Join(filled, " and "))
	}
	for _, c := range cells {
		if err := write(ctx, reached[c.Name], nameRow(c.Name)); err != nil {
			return err
		}
	}
	for _, c := range cells {
		if err := write(ctx, reached[c.Name], p.rows()...); err != nil {
			return err
		}
	}
	return nil
}

// Admit makes sure that a store is the cell of a name, and tells it where organizations are. Nobody may read or write
// records of a store before that.
func (p *Placement) Admit(ctx context.Context, name string, conn driver.Conn) error {
	s, err := Read(ctx, conn)
	switch {
	case err != nil:
		return err
	case s.name != "" && s.name != name:
		return exchanged(name, s.name)
	case s.name == "" && p.has(name):
		return misplaced(fmt.Sprintf("the store of the cell %s is not the one that organizations were placed in: it is new, "+
			"or was emptied; restore it from a backup, with the table placement", name))
	case s.name == "":
		// It becomes a cell. Records that nobody placed would be in it beside those of the same organizations elsewhere.
		if has, err := hasRecords(ctx, conn); err != nil {
			return err
		} else if has {
			return misplaced(fmt.Sprintf("the store of the new cell %s has records already: name an empty database", name))
		}
		if err := write(ctx, conn, nameRow(name)); err != nil {
			return err
		}
	}
	var missing []row
	for _, r := range p.with(s.Placement).rows() {
		subject, err := ParseSubject(r.subject)
		known, ok := s.places[subject]
		switch {
		case err != nil || ok && (known.Revision >= r.Revision || known.State != Open):
			// Of a move that is under way, the mover replaces the row.
		case ok && known.Cell == r.Cell:
			// It knows that. The old cell's rows of a move are newer in the end, and the mover relies on that of the new one.
		case r.Cell == name && known.Cell != name && r.Revision != first:
			// Nothing came to this store, whatever others say: it was restored to what it was before. It does not answer.
		default:
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return write(ctx, conn, missing...)
}

// nameRow is what a store is told of itself.
func nameRow(name string) row { return row{self, Place{Cell: name, Revision: first, State: Open}} }

func exchanged(name, other string) error {
	return misplaced(fmt.Sprintf("the store at the address of the cell %s is the cell %s: check the file of cells",
		name, other))
}

// Alone makes sure that a store is no cell: it would answer for a part of the organizations.
func Alone(ctx context.Context, conn driver.Conn) error {
	s, err := Read(ctx, conn)
	if err == nil && s.name != "" {
		err = misplaced(fmt.Sprintf("the store is the cell %s of several: name them all, with RUNLENS_CELLS", s.name))
	}
	return err
}
