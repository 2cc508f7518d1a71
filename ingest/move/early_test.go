package move_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
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

// A command that dies while it takes everything out of the old cell is gone on with, also when another process has
// started meanwhile, which tells each cell what it does not know.
func TestAMoveThatEndedLast(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.fill(b.acme)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opened := false
	if err := move.Run(ctx, move.Options{Cells: b.conns, Logger: quiet, Secrets: olap.AcceptCursorSecrets,
		Progress: func(uint64) {
			if opened {
				cancel()
			}
		},
		Reached: func(s move.Step) error { opened = s == move.Opened; return nil }, Lease: lease, Margin: lease,
	}, b.subject(), "b"); err == nil {
		t.Fatal("the move ended before it was interrupted")
	}
	for range 2 {
		p, err := cells.Find(t.Context(), []cells.Cell{{Name: "a"}, {Name: "b"}}, b.conns)
		b.must(err)
		for name, conn := range b.conns {
			b.must(p.Admit(t.Context(), name, conn))
		}
		if err := b.move(b.subject(), "b", nil); err != nil && !errors.Is(err, move.ErrThere) {
			t.Error(err)
		}
	}
	if left := b.rows("a", b.acme); len(left) > 0 {
		t.Errorf("a still has %v", left)
	}
}
