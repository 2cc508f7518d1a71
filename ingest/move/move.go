package move

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
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
	// Overview is snapshot.OverviewAge but for tests.
	Overview time.Duration
}

// A mover makes one move.
type mover struct {
	o        Options
	subject  cells.Subject
	from, to side
	slot     cells.Place // the row of the subject's slot in the old cell, as find read it
	number   uint64
	newest   uint64 // the greatest revision that a cell had when the command began
	copied   uint64
	known    map[string][]string // the columns of tables
	resumed  bool                // another command began it
	stamped  time.Time           // the greatest stamp of all rows that were compared
	// Of so many organizations the new cell has conflicts of attribution records, and since when.
	conflicting      uint64
	conflictingSince time.Time
}

// Run moves a subject to a cell. A move that ended early is gone on with by the same call. The error is ErrThere if
// there is nothing to do, ErrTaken if another command makes the same move.
func Run(ctx context.Context, o Options, subject cells.Subject, to string) error {
	o.Lease, o.Margin = cmp.Or(o.Lease, cells.Lease), cmp.Or(o.Margin, rollup.Margin)
	o.Overview = cmp.Or(o.Overview, snapshot.OverviewAge)
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

// place is what a cell is told next.
func (m *mover) place(cell string, state cells.State) cells.Place {
	revision := cells.NextRevision(m.newest, m.from.at.Revision, m.to.at.Revision)
	next := cells.Place{Cell: cell, Revision: revision, State: state, To: m.to.name, Mover: m.number}
	if state == cells.Open {
		next.To = ""
	}
	return next
}

// bring is 1 to 7 as far as the new cell is told: afterwards it answers. Clocks are checked before anything is begun. A
// command that died may have begun, and closed the old cell: 1 lets writers go on first.
func (m *mover) bring(ctx context.Context) error {
	organizations, err := m.organizations(ctx, &m.from)
	if err == nil && !m.resumed {
		_, err = m.checkClocks(ctx, organizations)
	}
	if err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	since, err := m.boundary(ctx)
	if err != nil {
		return err
	}
	if organizations, err = m.organizations(ctx, &m.from); err != nil {
		return err
	}
	if err := m.copy(ctx, organizations, time.Time{}, records...); err != nil {
		return err
	}
	if err := m.o.Reached(Copied); err != nil {
		return err
	}
	if err := m.awaitServers(ctx); err != nil { // while writers may go on
		return err
	}
	if _, err := m.checkClocks(ctx, organizations); err != nil {
		return err
	}
	if err := m.from.become(ctx, m.subject, m.place(m.from.name, cells.Closing)); err != nil {
		return err
	}
	if err := m.o.Reached(Closed); err != nil {
		return err
	}
	if err := snapshot.Pause(ctx, m.o.Lease); err != nil { // for which writers rely on what they have read
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
	if err := m.awaitServers(ctx); err != nil { // of conflicts that were found since
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
