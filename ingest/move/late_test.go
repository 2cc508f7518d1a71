package move_test

import (
	"maps"
	"testing"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
)

// A block of rows that reaches the new cell twice, the second time after the rows were taken out of both cells because
// of a purge, is not there when the move has ended.
func TestACopyThatComesLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 4))
	held := olaptest.Hold(b.conns["b"])
	conns := maps.Clone(b.conns)
	conns["b"] = held
	again := held.Late("INSERT INTO attributions")
	b.must(b.moveOver(conns, b.subject(), "b", func(s move.Step) error {
		switch s {
		case move.Begun:
		case move.Copied:
			b.must(purge.Person(b.acme, "ada@x.example").Run(t.Context(), b.conns["a"], func(purge.Step) {}))
		default:
			again()
		}
		return nil
	}))
	if n := b.people("b"); n != 0 || b.count("b", b.acme) != 4 {
		t.Errorf("%d rows of a purged person and %d runs, want none and 4", n, b.count("b", b.acme))
	}
}

// What is copied of the questions that were answered in the old cell comes twice, the second time when the move has
// ended, and the organization was purged in the new cell.
func TestALogThatComesLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.fill(b.acme)
	held := olaptest.Hold(b.conns["b"])
	conns := maps.Clone(b.conns)
	conns["b"] = held
	again := held.Late("INSERT INTO usage_log")
	b.must(b.moveOver(conns, b.subject(), "b", nil))
	b.must(purge.Organization(b.acme).Run(t.Context(), b.conns["b"], func(purge.Step) {}))
	again()
	left := b.rows("b", b.acme)
	delete(left, "audit_log")
	if len(left) > 0 {
		t.Errorf("purged, and b has %v", left)
	}
}
