package cells

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	self = "self" // the subject of a store's own name
	// first is the revision of what is placed first.
	first = 1
	// chance is how many bits of a revision are random, so that two that were made at once differ.
	chance = 16
)

// NextRevision is greater than some revisions.
func NextRevision(than ...uint64) uint64 {
	return (slices.Max(than)>>chance+1)<<chance | rand.Uint64N(1<<chance)
}

var ofAll = sql.AllOrganizations("where organizations are is no row of any of them")

// A Told is what a store says.
type Told struct {
	Placement
	name string // of itself; empty for none
}

// Name is the cell that the store is; empty for none.
func (t Told) Name() string { return t.name }

// Reads reports whether questions of an organization are answered from the store, which is that of a cell.
func (t Told) Reads(cell string, organization schema.OrganizationID) bool {
	return t.Of(organization) == cell
}

// Writes reports whether what is stored of an organization in the store, which is that of a cell, is acknowledged, and
// the revision that says so.
func (t Told) Writes(cell string, organization schema.OrganizationID) (revision uint64, writes bool) {
	at := t.Place(OrganizationSubject(organization))
	return at.Revision, at.Cell == cell && (at.State == Open || at.State == Moving)
}

// Leaves reports whether a move of an organization from the store to a cell has begun, and not ended.
func (t Told) Leaves(organization schema.OrganizationID, to string) bool {
	at := t.Place(OrganizationSubject(organization))
	return at.State != Open && at.To == to
}

// Writable reports whether all that is in the store, which is that of a cell, may be written.
func (t Told) Writable(cell string) bool {
	for _, at := range t.places {
		if at.Cell == cell && at.State != Open && at.State != Moving {
			return false
		}
	}
	return true
}

// Arriving reports whether something is on its way into the store.
func (t Told) Arriving() bool {
	for _, at := range t.places {
		if at.State == Arriving {
			return true
		}
	}
	return false
}

// SameIn reports whether the same is in the store, which is that of a cell, as it said later, and was all the time.
func (t Told) SameIn(cell string, later Told) bool {
	for subject, at := range later.places {
		before := t.places[subject]
		if (before.Cell == cell || at.Cell == cell) && before.Revision != at.Revision {
			return false
		}
	}
	return true
}

// Version grows with whatever the store is told.
func (t Told) Version() (version uint64) {
	for _, at := range t.places {
		version += at.Revision >> chance
	}
	return version
}

// UnderWay are the subjects of which a move has not ended in the store, in order.
func (t Told) UnderWay() []Subject {
	return t.sorted(func(_ Subject, at Place) bool { return at.State != Open })
}

// Pins are the organizations of a slot that have a row of their own.
func (t Told) Pins(slot int) (organizations []string) {
	for subject := range t.places {
		if subject.organization != "" && subject.slot == slot {
			organizations = append(organizations, string(subject.organization))
		}
	}
	return organizations
}

// readPlacement reads all cells that the newest revision of each subject names.
var readPlacement = sql.Select{
	Columns: []string{"subject", "groupUniqArray(cell)", "any(revision)", "toString(any(state))", "any(destination)",
		"any(mover)"}, From: ofAll(schema.TablePlacement),
	Where: []string{"(subject, revision) IN" + sql.In(sql.Select{
		Columns: []string{"subject", "max(revision)"}, From: ofAll(schema.TablePlacement), Group: []string{"subject"},
	})},
	Group: []string{"subject"},
}.String()

// Read reads what a store says. Whatever was written before the call is in it.
func Read(ctx context.Context, conn driver.Conn) (Told, error) {
	t := Told{Placement: Placement{map[Subject]Place{}}}
	rows, err := conn.Query(ctx, readPlacement)
	if err != nil {
		return t, fmt.Errorf("read where organizations are: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var subject, state string
		var in []string
		var at Place
		if err := rows.Scan(&subject, &in, &at.Revision, &state, &at.To, &at.Mover); err != nil {
			return t, fmt.Errorf("read where organizations are: %w", err)
		}
		if len(in) > 1 {
			return t, twice(subject, in)
		}
		at.Cell, at.State = in[0], State(state)
		if subject == self {
			t.name = at.Cell
		} else if s, err := ParseSubject(subject); err == nil {
			t.places[s] = at
		}
	}
	return t, rows.Err()
}

func twice(subject string, in []string) error {
	return fmt.Errorf("%s was placed in %s at once, by files of cells that differ: stop everything, empty the table "+
		"placement of every cell and start with one file", subject, strings.Join(in, " and in "))
}

// hasRecords reports whether a store has rows of any organization.
func hasRecords(ctx context.Context, conn driver.Conn) (bool, error) {
	for _, table := range []string{schema.TableAPIKeys, schema.TableAgents, schema.TableRuns, schema.TableAttributions} {
		var rows uint64
		count := sql.Select{Columns: []string{"count()"}, From: ofAll(table)}
		if err := conn.QueryRow(ctx, count.String()).Scan(&rows); err != nil {
			return false, fmt.Errorf("find out whether a cell has records: %w", err)
		}
		if rows > 0 {
			return true, nil
		}
	}
	return false, nil
}

// A row is what a store is told.
type row struct {
	subject string
	Place
}

// rows are all that there is to tell a store that has no part in any move.
func (p Placement) rows() (rows []row) {
	for s, at := range p.places {
		rows = append(rows, row{s.String(), Place{Cell: at.Cell, Revision: at.Revision, State: Open}})
	}
	return rows
}

// Write tells a store where a subject is.
func Write(ctx context.Context, conn driver.Conn, s Subject, at Place) error {
	return write(ctx, conn, row{s.String(), at})
}

// write stores rows, all or none of them.
func write(ctx context.Context, conn driver.Conn, rows ...row) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+schema.TablePlacement+
		" (subject, cell, revision, state, destination, mover)")
	for i := 0; i < len(rows) && err == nil; i++ {
		r := rows[i]
		err = batch.Append(r.subject, r.Cell, r.Revision, string(r.State), r.To, r.Mover)
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		return fmt.Errorf("store where organizations are: %w", err)
	}
	return nil
}
