package cells_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// What was stored in a cell is acknowledged only if its organization was there, and could be written, all the time: not
// when it is closing, and not when it has been away meanwhile.
func TestAGate(t *testing.T) {
	conns, list := stores(t, "a", "b"), of("a", "b")
	p, err := cells.Find(t.Context(), list, conns)
	if err != nil {
		t.Fatal(err)
	}
	organization := schema.OrganizationID("acme")
	cell := p.Of(organization)
	gate := cells.NewDirectory(p).NewGate(cell, conns[cell])
	revision := uint64(1)
	refused := func(states ...cells.State) bool {
		t.Helper()
		pass, err := gate.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range states {
			revision = cells.NextRevision(revision)
			err := cells.Write(t.Context(), conns[cell], cells.OrganizationSubject(organization),
				cells.Place{Cell: cell, Revision: revision, State: state})
			if err != nil {
				t.Fatal(err)
			}
		}
		list, err := pass.Refused(t.Context(), map[schema.OrganizationID]bool{organization: true})
		if err != nil {
			t.Fatal(err)
		}
		return list[organization]
	}
	for _, c := range []struct {
		meanwhile []cells.State
		refused   bool
	}{
		{nil, false}, {[]cells.State{cells.Moving, cells.Closing}, true}, {nil, true},
		{[]cells.State{cells.Open}, true}, {nil, false}, {[]cells.State{cells.Switched, cells.Open}, true}, {nil, false},
	} {
		if got := refused(c.meanwhile...); got != c.refused {
			t.Errorf("after %v: refused %v, want %v", c.meanwhile, got, c.refused)
		}
	}
}

// A process learns everything that its cell is told, whatever is merged meanwhile, and reads it only where there is
// something new.
func TestADirectoryHearsWhatIsNew(t *testing.T) {
	conns, list := stores(t, "a"), of("a")
	p, err := cells.Find(t.Context(), list, conns)
	if err != nil {
		t.Fatal(err)
	}
	held := olaptest.Hold(conns["a"])
	directory := cells.NewDirectory(p)
	last, err := cells.Read(t.Context(), conns["a"])
	if err != nil {
		t.Fatal(err)
	}
	hear := func(what string, state cells.State, read bool) {
		t.Helper()
		before := held.Sent()
		told, err := directory.Told(t.Context(), "a", held, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		got, sent := told.Place(cells.OrganizationSubject("acme")).State, held.Sent()-before
		if got != state || sent > 1 != read {
			t.Errorf("%s: %s, by %d statements; want %s, and more than one: %v", what, got, sent, state, read)
		}
		if grew, same := told.Version() > last.Version(), last.SameIn("a", told); grew == same {
			t.Errorf("%s: from version %d to %d, the same: %v", what, last.Version(), told.Version(), same)
		}
		last = told
	}
	tell := func(state cells.State) {
		t.Helper()
		now, err := cells.Read(t.Context(), conns["a"])
		if err != nil {
			t.Fatal(err)
		}
		place := now.Place(cells.OrganizationSubject("acme"))
		place.Revision, place.State = cells.NextRevision(place.Revision), state
		if err := cells.Write(t.Context(), conns["a"], cells.OrganizationSubject("acme"), place); err != nil {
			t.Fatal(err)
		}
	}
	merge := func() {
		t.Helper()
		if err := conns["a"].Exec(t.Context(), "OPTIMIZE TABLE placement FINAL"); err != nil {
			t.Fatal(err)
		}
	}
	hear("first", cells.Open, true)
	hear("again", cells.Open, false)
	tell(cells.Moving)
	lease := time.Now() // that begins with the next reading, however long what follows takes
	hear("moving", cells.Moving, true)
	believed := func(what string, since time.Time, state cells.State) {
		t.Helper()
		told, err := directory.Told(t.Context(), "a", held, since)
		if got := told.Place(cells.OrganizationSubject("acme")).State; err != nil || got != state {
			t.Errorf("%s: %s, %v; want %s", what, got, err, state)
		}
	}
	tell(cells.Open)
	believed("within the lease", lease, cells.Moving)
	believed("the machine slept", olaptest.Slept(lease, time.Hour), cells.Open)
	tell(cells.Moving)
	hear("moving again", cells.Moving, true)
	merge()
	hear("a merge", cells.Moving, false)
	tell(cells.Closing)
	merge()
	hear("closing, and a merge", cells.Closing, true)
	held.After("FROM system.parts", func() { tell(cells.Switched) })
	hear("what comes before it is read", cells.Closing, false)
	hear("what came then", cells.Switched, true)
}
