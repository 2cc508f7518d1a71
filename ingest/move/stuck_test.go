package move_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
)

// Two commands that move one slot to different cells are begun at the same time, and both end early. Each has told its
// new cell that the slot is arriving. The one that has told the old cell can be run again.
func TestTwoDestinationsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.add("c")
	b.store(records(b.acme, 0, 2))
	slot := cells.SlotSubject(cells.SlotOf(b.acme))
	held := olaptest.Hold(b.conns["b"])
	held.After("SELECT now64(3", func() {
		if err := b.move(slot, "c", until(move.Begun)); !errors.Is(err, errStopped) {
			t.Error(err)
		}
	})
	conns := maps.Clone(b.conns)
	conns["b"] = held
	if err := b.moveOver(conns, slot, "b", nil); !errors.Is(err, move.ErrTaken) {
		t.Errorf("the command that came later: %v", err)
	}
	b.must(b.move(slot, "c", nil))
	b.forget()
	b.store(records(b.acme, 2, 1))
	b.allIn("c", 3)
	b.must(b.move(slot, "b", nil))
}

// A slot and an organization of it that is pinned are begun at the same time, and both commands end before they see
// that. The organization goes on, and then the slot.
func TestASlotAndItsPinnedOrganizationThatEndedEarly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.add("c")
	b.store(records(b.acme, 0, 2))
	slot := cells.SlotSubject(cells.SlotOf(b.acme))
	b.must(cells.Write(t.Context(), b.conns["a"], b.subject(),
		cells.Place{Cell: "a", Revision: cells.NextRevision(1), State: cells.Open}))
	ctx, stop := context.WithCancel(t.Context())
	stopped, held := olaptest.Hold(b.conns["a"]), olaptest.Hold(b.conns["b"])
	held.After("SELECT now64(3", func() {
		if err := b.move(b.subject(), "c", until(move.Begun)); !errors.Is(err, errStopped) {
			t.Error(err)
		}
		stopped.After("INSERT INTO placement", stop)
	})
	conns := maps.Clone(b.conns)
	conns["a"], conns["b"] = stopped, held
	if err := move.Run(ctx, b.options(conns, nil), slot, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("the slot: %v", err)
	}
	if err := b.move(slot, "b", nil); err == nil || !strings.Contains(err.Error(), b.subject().String()) {
		t.Errorf("the slot first: %v", err)
	}
	b.must(b.move(b.subject(), "c", nil))
	b.must(b.move(slot, "b", nil))
	p := b.forget()
	if p.Of(b.acme) != "c" || p.Place(slot).Cell != "b" {
		t.Errorf("they are in %s and %s", p.Of(b.acme), p.Place(slot).Cell)
	}
	b.store(records(b.acme, 2, 1))
	b.allIn("c", 3)
}
