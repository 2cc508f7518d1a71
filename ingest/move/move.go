package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// ErrThere is returned when there is nothing to move: everything of the subject is in the cell.
var ErrThere = errors.New("it is there already")

// A Step is one of the steps of the package, as people read it.
type Step string

// The steps that are reported when they are done.
const (
	Begun    Step = "begun"
	Copied   Step = "copied"
	Closed   Step = "closed: writers wait"
	Agreed   Step = "both cells have the same rows"
	Damaged  Step = "rollup to be built"
	Switched Step = "switched: questions are answered in the new cell"
	Opened   Step = "open: writers go on in the new cell"
	Purged   Step = "purged from the old cell"
)

// Options say how a move is made.
type Options struct {
	// Cells are the stores that were reached, by the names of their cells: those of the move, and others, which are told
	// about it. One that is not among them finds out from the two.
	Cells map[string]driver.Conn
	// Secrets has a store accept the cursors of another one. Both accept those of both: while some servers know that the
	// organizations were moved, and others don't, a page is asked for in either.
	Secrets  func(ctx context.Context, from, to driver.Conn) error
	Logger   *slog.Logger
	Progress func(rows uint64) // that were copied so far
	// Reached is told of each step that is done. Its error ends the move there.
	Reached func(Step) error
	Lease   time.Duration // cells.Lease but for tests
	Margin  time.Duration // rollup.Margin but for tests
}

// A mover makes one move.
type mover struct {
	o        Options
	subject  cells.Subject
	from, to side
	number   uint64
	newest   uint64 // the greatest revision that a cell had when the command began
	copied   uint64
	known    map[string][]string // the columns of tables
	resumed  bool                // another command began it
}

// Run moves a subject to a cell. A move that ended early is gone on with by the same call. The error is ErrThere if
// there is nothing to do, ErrTaken if another command makes the same move.
func Run(ctx context.Context, o Options, subject cells.Subject, to string) error {
	o.Lease, o.Margin = cmp.Or(o.Lease, cells.Lease), cmp.Or(o.Margin, rollup.Margin)
	m := &mover{o: o, subject: subject, to: side{name: to, conn: o.Cells[to]}, number: rand.Uint64() | 1,
		known: map[string][]string{}}
	if err := m.find(ctx); err != nil {
		return err
	}
	if m.to.at.Cell != to {
		if err := m.bring(ctx); err != nil {
			return err
		}
	}
	if m.to.at.State != cells.Open {
		if err := m.change(ctx); err != nil {
			return err
		}
	}
	return m.leave(ctx)
}

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
		if own.Revision > 0 && own.State != cells.Open && own.To != m.to.name {
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
	for _, at := range []cells.Place{m.from.at, m.to.at} {
		m.resumed = m.resumed || at.Revision > 0 && at.State != cells.Open
	}
	return m.checkClocks(ctx)
}

// overlaps refuses a subject some of whose organizations are being moved with another one.
func (m *mover) overlaps(told cells.Told) error {
	for _, other := range told.UnderWay() {
		if other != m.subject && other.Overlaps(m.subject) {
			return fmt.Errorf("%s is being moved to the cell %s: run that again first", other, told.Own(other).To)
		}
	}
	return nil
}

// place is what a cell is told next.
func (m *mover) place(cell string, state cells.State) cells.Place {
	revision := cells.NextRevision(m.newest, m.from.at.Revision, m.to.at.Revision)
	next := cells.Place{Cell: cell, Revision: revision, State: state, To: m.to.name, Mover: m.number}
	if state == cells.Open {
		next.To = ""
	}
	return next
}

// bring is 1 to 7 as far as the new cell is told: afterwards it answers.
func (m *mover) bring(ctx context.Context) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	since, err := m.boundary(ctx)
	if err != nil {
		return err
	}
	organizations, err := m.organizations(ctx, &m.from)
	if err != nil {
		return err
	}
	if err := m.copy(ctx, organizations, time.Time{}, records...); err != nil {
		return err
	}
	if err := m.o.Reached(Copied); err != nil {
		return err
	}
	if err := m.from.become(ctx, m.subject, m.place(m.from.name, cells.Closing)); err != nil {
		return err
	}
	if err := m.o.Reached(Closed); err != nil {
		return err
	}
	if organizations, err = m.agree(ctx, since); err != nil {
		return err
	}
	if err := m.o.Reached(Agreed); err != nil {
		return err
	}
	if err := m.damage(ctx); err != nil {
		return err
	}
	if err := m.o.Reached(Damaged); err != nil {
		return err
	}
	if err := m.passClock(ctx, organizations); err != nil {
		return err
	}
	if err := m.from.check(ctx); err != nil {
		return err
	}
	return m.to.become(ctx, m.subject, m.place(m.to.name, cells.Switched))
}

// begin is 1. A subject that was closed by a command that died stays so for a Lease, in which whoever read that it was
// switched, before that was rolled back, has answered.
func (m *mover) begin(ctx context.Context) error {
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

// tellPins tells the new cell which organizations of the slot are not in it: those that are pinned, as the old cell
// knows.
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

// change is 7 to 9.
func (m *mover) change(ctx context.Context) error {
	if m.to.at.Mover != m.number { // of a command that died
		if err := m.to.become(ctx, m.subject, m.place(m.to.name, cells.Switched)); err != nil {
			return err
		}
	}
	next := m.place(m.to.name, cells.Switched)
	if err := m.from.become(ctx, m.subject, next); err != nil {
		return err
	}
	if err := m.o.Reached(Switched); err != nil {
		return err
	}
	if err := snapshot.Pause(ctx, m.o.Lease); err != nil {
		return err
	}
	organizations, err := m.organizations(ctx, &m.from)
	if err != nil {
		return err
	}
	if err := m.passClock(ctx, organizations); err != nil {
		return err
	}
	next = m.place(m.to.name, cells.Open)
	if err := m.to.become(ctx, m.subject, next); err != nil {
		return err
	}
	for name, conn := range m.o.Cells {
		if name == m.from.name || name == m.to.name {
			continue
		}
		if err := cells.Write(ctx, conn, m.subject, next); err != nil {
			m.o.Logger.Warn("a cell could not be told where the organizations are; it is told at the next start", "cell", name,
				"error", err)
		}
	}
	return m.o.Reached(Opened)
}
