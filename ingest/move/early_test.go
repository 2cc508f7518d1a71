package move_test

import (
	"errors"
	"testing"

	"github.com/runlens/runlens/ingest/move"
)

var errStopped = errors.New("stopped")

// A command that dies after any step is gone on with by the next one, and nothing that was stored meanwhile is lost.
func TestAMoveThatEndedEarly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 4))
	stored, from, to := 4, "a", "b"
	for _, last := range []move.Step{move.Begun, move.Closed, move.Agreed, move.Damaged, move.Switched, move.Opened} {
		err := b.move(b.subject(), to, func(s move.Step) error {
			if s == last {
				return errStopped
			}
			return nil
		})
		if !errors.Is(err, errStopped) {
			t.Fatalf("%s: %v", last, err)
		}
		written := make(chan error, 1)
		go func() { written <- b.writer(b.conns).Write(t.Context(), records(b.acme, stored, 1)) }()
		b.must(b.move(b.subject(), to, nil))
		b.must(<-written)
		stored++
		if here, left := b.count(to, b.acme), b.count(from, b.acme); here != uint64(stored) {
			t.Errorf("stopped when it was %s: %d records in %s and %d in %s, want %d", last, here, to, left, from, stored)
		}
		from, to = to, from
	}
}
