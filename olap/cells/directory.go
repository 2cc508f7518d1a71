package cells

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/elapsed"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/parts"
	"github.com/runlens/runlens/schema"
)

// placing are the rows of where organizations are. Where some came, all are read, so that few need to be told apart.
var placing = parts.Table{Name: schema.TablePlacement, Column: "subject", Most: 1}

// A Directory is what a process knows of where organizations are: the placement, of what all stores said, and what each
// cell's own store said last. It is safe for concurrent use.
type Directory struct {
	mu        sync.Mutex
	placement *Placement
	cells     map[string]*heard
}

// heard is what a cell's own store said last.
type heard struct {
	reading cache.Group[Told]
	began   time.Time   // when the last reading began; zero before the first
	state   parts.State // of the table, before what is told was read
	told    Told
}

// NewDirectory returns a Directory that knows a placement.
func NewDirectory(p *Placement) *Directory {
	return &Directory{placement: p, cells: map[string]*heard{}}
}

// Placement is where organizations are, as far as it is known.
func (d *Directory) Placement() *Placement {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.placement
}

// Told is what a cell's own store says, by a reading that began at an instant or later: the last one if that did, else
// a new one. Who calls meanwhile shares it.
func (d *Directory) Told(ctx context.Context, cell string, conn driver.Conn, since time.Time) (Told, error) {
	h := d.heard(cell)
	if told, ok := d.recent(h, since); ok {
		return told, nil
	}
	return h.reading.Do(ctx, cache.Key{}, func(ctx context.Context) (Told, error) {
		began := time.Now()
		var state parts.State
		var told Told
		err := failure.Within(ctx, failure.Silence, func(ctx context.Context) (err error) {
			state, told, err = h.read(ctx, conn)
			return err
		})
		if err == nil && told.name != cell {
			err = exchanged(cell, told.name)
		}
		if err != nil {
			return Told{}, fmt.Errorf("cell %s: %w", cell, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		h.began, h.state, h.told = began, state, told
		d.placement = d.placement.with(told.Placement)
		return told, nil
	})
}

// read reads what the store says, unless no row came since the last time. It is called within reading.
func (h *heard) read(ctx context.Context, conn driver.Conn) (parts.State, Told, error) {
	changes, err := placing.Changed(ctx, conn, h.state)
	if err != nil || !changes.All && len(changes.Values) == 0 {
		return changes.State, h.told, err
	}
	told, err := Read(ctx, conn)
	return changes.State, told, err
}

// Here says which organizations are in a cell, as Told says it, but for those that another store says, by a greater
// revision, are elsewhere: the cell was restored to what it was before a move. It is all of them where d is nil, for a
// store that is no cell.
func (d *Directory) Here(
	ctx context.Context, cell string, conn driver.Conn, since time.Time,
) (func(schema.OrganizationID) bool, error) {
	if d == nil {
		return func(schema.OrganizationID) bool { return true }, nil
	}
	told, err := d.Told(ctx, cell, conn, since)
	return func(o schema.OrganizationID) bool { return told.Reads(cell, o) && d.Placement().Of(o) == cell }, err
}

// Remind tells a cell's own store where others say, by greater revisions, that organizations are, if it said otherwise
// when it was read last: it was restored to what it was before a move, or could not be told.
func (d *Directory) Remind(ctx context.Context, cell string, conn driver.Conn) error {
	if d == nil || !d.Placement().corrects(d.last(cell)) {
		return nil
	}
	return d.Placement().Admit(ctx, cell, conn)
}

func (d *Directory) last(cell string) Told {
	h := d.heard(cell)
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.told
}

func (d *Directory) heard(cell string) *heard {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.cells[cell]
	if h == nil {
		h = &heard{}
		d.cells[cell] = h
	}
	return h
}

func (d *Directory) recent(h *heard, since time.Time) (Told, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.told, !h.began.IsZero() && elapsed.Between(h.began, since) <= 0
}

// A Gate says of a cell whether what was stored there may be acknowledged.
type Gate struct {
	directory *Directory
	cell      string
	conn      driver.Conn
}

// NewGate returns the gate of a cell, whose store is conn; nil where d is nil.
func (d *Directory) NewGate(cell string, conn driver.Conn) *Gate {
	if d == nil {
		return nil
	}
	return &Gate{d, cell, conn}
}

// A Pass is what the cell's store said before something was stored.
type Pass struct {
	gate *Gate
	told Told
}

// Pass is to be called before something is stored. It may be of what was read earlier.
func (g *Gate) Pass(ctx context.Context) (Pass, error) {
	told, err := g.directory.Told(ctx, g.cell, g.conn, time.Now().Add(-Lease))
	return Pass{g, told}, err
}

// Open reports whether what is stored of an organization may be acknowledged, as far as is known before.
func (p Pass) Open(organization schema.OrganizationID) bool {
	_, writes := p.told.Writes(p.gate.cell, organization)
	return writes
}

// Rests reports whether an organization is in the cell, and no other cell has anything of it because of a move that is
// under way.
func (p Pass) Rests(organization schema.OrganizationID) bool {
	at := p.told.Place(OrganizationSubject(organization))
	return at.Cell == p.gate.cell && at.State == Open
}

// Refused is to be called when something was stored and is visible. It returns of which organizations that may not be
// acknowledged: they were, or are being, moved. It is to be stored again where they are then.
//
// What is acknowledged was visible before the store said that its organization may be written here, at the revision
// that said so before. So the organization was here all the time, and what copies it after a later state has it.
func (p Pass) Refused(
	ctx context.Context, organizations map[schema.OrganizationID]bool,
) (refused map[schema.OrganizationID]bool, err error) {
	now, err := p.gate.directory.Told(ctx, p.gate.cell, p.gate.conn, time.Now())
	if err != nil {
		return nil, err
	}
	refused = map[schema.OrganizationID]bool{}
	for organization := range organizations {
		before, written := p.told.Writes(p.gate.cell, organization)
		after, writes := now.Writes(p.gate.cell, organization)
		if !written || !writes || before != after {
			refused[organization] = true
		}
	}
	return refused, nil
}

// Closed returns which organizations may not be written in the cell now.
func (g *Gate) Closed(
	ctx context.Context, organizations map[schema.OrganizationID]bool,
) (closed map[schema.OrganizationID]bool, err error) {
	told, err := g.directory.Told(ctx, g.cell, g.conn, time.Now())
	if err != nil {
		return nil, err
	}
	closed = map[schema.OrganizationID]bool{}
	for organization := range organizations {
		if _, writes := told.Writes(g.cell, organization); !writes {
			closed[organization] = true
		}
	}
	return closed, nil
}
