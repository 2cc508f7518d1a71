package cells_test

import (
	"testing"

	"github.com/runlens/runlens/olap/cells"
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
