package move_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
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

// The rollup of the new cell lacks what is copied to it, because of the stamps. Its server builds it, also before the
// move says that it has to, and does not report damage: nobody is to be woken.
func TestAnArrivalIsNoDamage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.fill(b.acme)
	stored, err := snapshot.Now(t.Context(), b.conns["a"])
	b.must(err)
	refresher := rollup.New(b.conns["b"], quiet, 0)
	for until := (time.Time{}); until.Before(stored); {
		b.must(refresher.Refresh(t.Context()))
		log, err := snapshot.ReadLog(t.Context(), b.conns["b"])
		b.must(err)
		until = log.Until
	}
	var said bytes.Buffer
	checker := b.checker("b", &said)
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		for more := s == move.Agreed; more; {
			var err error
			if more, err = checker.Step(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}))
	if !strings.Contains(said.String(), "is built again") || strings.Contains(said.String(), "is damaged") {
		t.Errorf("a move is no damage, but b says:\n%s", said.String())
	}
	b.repaired("b")
}

// Counts of inserts may be lost with the power. The rollup of what has arrived is to be built all the same.
func TestAnArrivalThatIsNotCounted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.fill(b.acme)
	b.must(rollup.New(b.conns["b"], quiet, 0).Refresh(t.Context()))
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Agreed {
			return b.conns["b"].Exec(t.Context(), "TRUNCATE TABLE insert_counters")
		}
		return nil
	}))
	log, err := snapshot.ReadLog(t.Context(), b.conns["b"])
	b.must(err)
	if len(log.Damaged) != 2 {
		t.Errorf("%+v is to be built, want runs and attributions of %s", log.Damaged, b.acme)
	}
}
