package move

import (
	"errors"
	"testing"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
)

// Of two commands that have read the same row, the first one replaces it; the second one is told so, and changes
// nothing.
func TestBecoming(t *testing.T) {
	t.Parallel()
	conn, subject := olaptest.OpenStore(t).Conn(), cells.SlotSubject(17)
	revision := cells.NextRevision(0)
	first, second := side{name: "a", conn: conn}, side{name: "a", conn: conn}
	of := func(mover uint64) cells.Place {
		return cells.Place{Cell: "a", Revision: revision + mover, State: cells.Moving, To: "b", Mover: mover}
	}
	if err := first.become(t.Context(), subject, of(1)); err != nil {
		t.Fatal(err)
	}
	if err := second.become(t.Context(), subject, of(2)); !errors.Is(err, ErrTaken) {
		t.Errorf("%v, want %v", err, ErrTaken)
	}
	if _, err := first.read(t.Context(), subject); err != nil || first.at != of(1) {
		t.Errorf("%+v, %v, want %+v", first.at, err, of(1))
	}
}
