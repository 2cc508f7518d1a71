package move_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
)

var errStopped = errors.New("stopped")

// until ends a move when a step is done.
func until(last move.Step) func(move.Step) error {
	return func(s move.Step) error {
		if s == last {
			return errStopped
		}
		return nil
	}
}

// A command that dies after any step is gone on with by the next one, which dies too, a step later. Whoever writes
// meanwhile says what it waits for, and nothing is lost.
func TestAMoveThatEndedEarly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 4))
	var said bytes.Buffer
	loud := slog.New(slog.NewTextHandler(&said, nil))
	written, stored, waiting := make(chan error), 4, 0
	for _, last := range []move.Step{
		move.Begun, move.Copied, move.Closed, move.Agreed, move.Damaged, move.Switched, move.Opened,
	} {
		if err := b.move(b.subject(), "b", until(last)); !errors.Is(err, errStopped) {
			t.Fatalf("%s: %v", last, err)
		}
		writer := b.loudWriter(loud, b.conns)
		batch := records(b.acme, stored, 1)
		stored++
		if last == move.Begun || last == move.Copied || last == move.Opened {
			b.must(writer.Write(t.Context(), batch))
			continue
		}
		waiting++
		go func() { written <- writer.Write(t.Context(), batch) }()
	}
	b.must(b.move(b.subject(), "b", nil))
	for range waiting {
		b.must(<-written)
	}
	if here, left := b.count("b", b.acme), b.count("a", b.acme); here != uint64(stored) || left != 0 {
		t.Errorf("%d records in b and %d in a, want %d and none", here, left, stored)
	}
	if !strings.Contains(said.String(), write.MovingText) {
		t.Errorf("nobody says what writers wait for:\n%s", said.String())
	}
}
