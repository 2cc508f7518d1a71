package move_test

import (
	"testing"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
)

// What was stored in a cell of an organization that is not there is taken out, all of it, also where another
// organization is placed meanwhile.
func TestTakeOutWhileAnotherIsPlaced(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.must(write.NewWriter(b.conns["b"], write.Retry{Logger: quiet}).Write(t.Context(), records(b.acme, 0, 2)))
	held := olaptest.Hold(b.conns["b"])
	held.After("ALTER TABLE attributions", func() {
		other := cells.OrganizationSubject(b.other)
		b.must(cells.Write(t.Context(), b.conns["b"], other,
			cells.Place{Cell: "a", Revision: cells.NextRevision(1), State: cells.Open}))
	})
	b.must(move.TakeOut(t.Context(), "b", held, b.acme))
	if left := b.rows("b", b.acme); len(left) > 0 {
		t.Errorf("b still has %v", left)
	}
}
