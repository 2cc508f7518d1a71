package move_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// While a command that moves an organization alone is paused, another one moves its slot, a part of the way or all of
// it. Then all cells say that the organization is in one cell, and all records that were acknowledged are there.
func TestASlotAndItsOrganizationAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range olaptest.Some(4, []struct {
		last    move.Step // of the slot's move, until the other command goes on
		pinned  bool      // the other command is paused when the organization is pinned, else when it has found it
		refused bool
		in      string // where the organization is when both have ended
	}{
		{move.Agreed, false, true, "b"}, {move.Purged, false, true, "b"},
		{move.Agreed, true, true, "a"}, {move.Purged, true, false, "c"},
	}...) {
		t.Run(fmt.Sprintf("%s, pinned: %v", c.last, c.pinned), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.add("c")
			b.store(records(b.acme, 0, 2))
			slot := cells.SlotSubject(cells.SlotOf(b.acme))
			slots := func() {
				if err := b.move(slot, "b", until(c.last)); !errors.Is(err, errStopped) {
					t.Error(err)
				}
			}
			conns := maps.Clone(b.conns)
			if c.pinned {
				held := olaptest.Hold(b.conns["a"])
				held.After("INSERT INTO placement", slots)
				conns["a"] = held
			} else {
				held := olaptest.Hold(b.conns["c"])
				held.After("SELECT now64(3", slots) // its clock is read last before the move begins
				conns["c"] = held
			}
			err := b.moveOver(conns, b.subject(), "c", nil)
			if refused := err != nil; refused != c.refused || refused && !strings.Contains(err.Error(), slot.String()) {
				t.Errorf("the organization alone: %v, refused is to be %v", err, c.refused)
			}
			if err := b.move(slot, "b", nil); err != nil && !errors.Is(err, move.ErrThere) {
				t.Error(err)
			}
			for i, heard := range []string{"a", "b", "c"} {
				if in := b.hear(map[string]driver.Conn{heard: b.conns[heard]}).Of(b.acme); in != c.in {
					t.Errorf("%s says that it is in %s, want %s", heard, in, c.in)
				}
				b.store(records(b.acme, 2+i, 1))
			}
			b.allIn(c.in, 5)
		})
	}
}

// A slot is not moved while one of its organizations is, and leaves it where it was moved since the command began.
func TestAnOrganizationOfASlotThatBegins(t *testing.T) {
	t.Parallel()
	for _, last := range olaptest.Some(2, move.Begun, move.Purged) {
		refused := last == move.Begun
		b := newBed(t)
		b.add("c")
		b.store(records(b.acme, 0, 2))
		beside := schema.OrganizationID("")
		for n := 0; beside == ""; n++ {
			one := schema.OrganizationID(fmt.Sprint("beside-", n))
			if cells.SlotOf(one) == cells.SlotOf(b.acme) {
				beside = one
			}
		}
		b.store(records(beside, 0, 1))
		slot := cells.SlotSubject(cells.SlotOf(b.acme))
		held := olaptest.Hold(b.conns["b"])
		held.After("SELECT now64(3", func() {
			if err := b.move(b.subject(), "c", until(last)); !errors.Is(err, errStopped) {
				t.Error(err)
			}
		})
		conns := maps.Clone(b.conns)
		conns["b"] = held
		err := b.moveOver(conns, slot, "b", nil)
		if got := err != nil; got != refused || got && !strings.Contains(err.Error(), b.subject().String()) {
			t.Errorf("%s: %v, refused is to be %v", last, err, refused)
		}
		if err := b.move(b.subject(), "c", nil); err != nil && !errors.Is(err, move.ErrThere) {
			t.Error(err)
		}
		if err := b.move(slot, "b", nil); err != nil && !errors.Is(err, move.ErrThere) {
			t.Error(err)
		}
		for _, heard := range []string{"a", "b", "c"} {
			p := b.hear(map[string]driver.Conn{heard: b.conns[heard]})
			if p.Of(b.acme) != "c" || p.Of(beside) != "b" {
				t.Errorf("%s: %s says that they are in %s and %s, want c and b", last, heard, p.Of(b.acme), p.Of(beside))
			}
		}
		if b.count("c", b.acme) != 2 || b.count("b", beside) != 1 || b.count("b", b.acme) != 0 {
			t.Errorf("%s: records are elsewhere", last)
		}
	}
}
