package move_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// People who are purged in the old cell while rows are copied, and before, stay out in the new one, whichever key their
// hashes are under; what was copied of them is taken out.
func TestAPurgeDuringAMove(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 4))
	person := func(cell, identifier string) {
		b.Helper()
		b.must(purge.Person(b.acme, identifier).Run(t.Context(), b.conns[cell], func(purge.Step) {}))
	}
	person("b", "eve@x.example") // the new cell has a key of its own
	person("a", "bob@x.example")
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Copied {
			if b.people("b") == 0 {
				t.Error("nobody was copied before the purge")
			}
			person("a", "ada@x.example")
		}
		return nil
	}))
	if n := b.people("b"); n != 0 || b.count("b", b.acme) != 4 {
		t.Errorf("%d rows of a purged person and %d runs, want none and 4", n, b.count("b", b.acme))
	}
	b.store(records(b.acme, 0, 4)) // what a source still has
	if n := b.people("b"); n != 0 {
		t.Errorf("%d rows of a purged person came again", n)
	}
	list, err := purged.Read(t.Context(), b.conns["b"], nil)
	b.must(err)
	for _, identifier := range []string{"ada@x.example", "bob@x.example", "eve@x.example"} {
		if _, ok := list.Until(purged.Person{Organization: b.acme, Identifier: identifier}); !ok {
			t.Errorf("%s is not on the list of the new cell", identifier)
		}
	}
}

// people is how many rows of people a cell has.
func (b *bed) people(cell string) (n uint64) {
	b.Helper()
	b.must(b.conns[cell].QueryRow(b.Context(), "SELECT (SELECT count() FROM attributions) +"+
		" (SELECT countIf(isNotNull(tupleElement(record, 'initiator_identifier'))) FROM runs)").Scan(&n))
	return n
}

// An insert that began when the old cell was open, and is stored there after its state has changed, is not acknowledged
// before it is in the new cell; whether the move ended meanwhile or not.
func TestAnInsertOverTheChangeOfState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 2))
	from, to, stored := "a", "b", 2
	for _, last := range []move.Step{move.Closed, move.Purged} {
		held := olaptest.Hold(b.conns[from])
		held.After("placement", func() { // the writer has read that it may write
			if err := b.move(b.subject(), to, until(last)); !errors.Is(err, errStopped) {
				t.Errorf("%s: %v", last, err)
			}
		})
		conns := maps.Clone(b.conns)
		conns[from] = held
		b.forget()
		written, next := make(chan error, 1), records(b.acme, stored, 1)
		go func() { written <- b.writer(conns).Write(t.Context(), next) }()
		stored++
		if last != move.Purged {
			for b.count(from, b.acme) != uint64(stored) { // it is stored where nothing is acknowledged
				time.Sleep(time.Millisecond)
			}
			select {
			case err := <-written:
				t.Errorf("acknowledged while the cell is closing: %v", err)
			default:
			}
			b.must(b.move(b.subject(), to, nil))
		}
		b.must(<-written)
		if n := b.count(to, b.acme); n != uint64(stored) {
			t.Errorf("%s: %d records in %s, want %d", last, n, to, stored)
		}
		from, to = to, from
	}
	// What was left in a cell is taken out when the organization comes back.
	b.must(b.move(b.subject(), to, nil))
	if n := b.count(to, b.acme); n != uint64(stored) {
		t.Errorf("%d records in %s, want %d", n, to, stored)
	}
}

// Writers rely for a Lease on what a cell said. So the old cell is not looked at before a Lease has passed since it was
// closed: what they stored meanwhile is moved.
func TestWhatWasReadBeforeACellWasClosedIsOutOfDate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 2))
	held := olaptest.Hold(b.conns["a"])
	conns := maps.Clone(b.conns)
	conns["a"] = held
	var closed, looked time.Time
	b.must(b.moveOver(conns, b.subject(), "b", func(s move.Step) error {
		if s == move.Closed {
			held.Before(held.Sent()+1, func() { looked = time.Now() })
			closed = time.Now()
		}
		return nil
	}))
	if waited := looked.Sub(closed); waited < lease {
		t.Errorf("the old cell was looked at %v after it was closed", waited)
	}
}

// A writer that has read that it may write, and stores what it has only when both cells have been compared, is not
// acknowledged before that is in the new cell.
func TestAnInsertAfterTheComparison(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 2))
	paused, goOn := make(chan struct{}), make(chan struct{})
	held := olaptest.Hold(b.conns["a"])
	held.After("placement", func() {
		close(paused)
		<-goOn
	})
	conns := maps.Clone(b.conns)
	conns["a"] = held
	b.forget()
	written := make(chan error, 1)
	go func() { written <- b.writer(conns).Write(t.Context(), records(b.acme, 2, 1)) }()
	<-paused
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Agreed {
			close(goOn)
			for b.count("a", b.acme) != 3 {
				time.Sleep(time.Millisecond)
			}
		}
		if s != move.Opened && s != move.Purged && len(written) > 0 {
			t.Errorf("acknowledged when the move was at %q", s)
		}
		return nil
	}))
	b.must(<-written)
	if here, left := b.count("b", b.acme), b.count("a", b.acme); here != 3 || left != 0 {
		t.Errorf("%d records in b and %d in a, want 3 and none", here, left)
	}
}

// A writer that has read that it may write, and stores a record under another clock while the old cell is about to
// refresh what it has, dies then, or before ClickHouse has counted the insert. The record counts once in the new cell.
func TestAnInsertAfterTheRefresh(t *testing.T) {
	t.Parallel()
	for _, counted := range olaptest.Some(2, true, false) {
		b := newBed(t)
		b.store(records(b.acme, 0, 1))
		a := b.conns["a"]
		b.must(rollup.New(a, quiet, 0).Refresh(t.Context())) // else it would find the later copy with the first
		again := records(b.acme, 0, 1)
		again.Agents, again.Runs = nil, nil
		again.Attributions[0].OccurredAt += 3_600_000
		stamps, held := olaptest.StampsOf(t, a), olaptest.Hold(a)
		insert := func() { // others are waited for, of which the last one takes a second
			if !counted {
				b.must(a.Exec(t.Context(), "DETACH TABLE count_inserted_attributions"))
			}
			stamps.Shift(t, time.Second)
			b.must(write.NewWriter(a, write.Retry{Logger: quiet}).Write(t.Context(), again))
			stamps.Shift(t, 0)
			if !counted {
				b.must(a.Exec(t.Context(), "ATTACH TABLE count_inserted_attributions"))
			}
		}
		conns := maps.Clone(b.conns)
		conns["a"] = held
		b.must(b.moveOver(conns, b.subject(), "b", func(s move.Step) error {
			if s == move.Closed {
				held.After("FROM system.processes", insert)
			}
			return nil
		}))
		var stored, counting uint64
		of := "organization_id = '" + string(b.acme) + "'"
		superseded := schema.SupersededAttributions(sql.AllOrganizations("a test names one"), []string{"clock", "id"}, of)
		b.must(b.conns["b"].QueryRow(t.Context(), "SELECT count(), countIf((occurred_at, attribution_id) NOT IN ("+
			superseded.String()+")) FROM attributions FINAL WHERE "+of).Scan(&stored, &counting))
		if stored != 2 || counting != 1 {
			t.Errorf("counted: %v: %d copies of the record, of which %d count, want 2 and 1", counted, stored, counting)
		}
	}
}

// Of two commands for one move one goes on, whichever it is, and the other one ends without doing harm.
func TestTwoCommandsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 4))
	other := make(chan error, 1)
	first := b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Copied {
			go func() { other <- b.move(b.subject(), "b", until(move.Begun)) }()
			if err := <-other; !errors.Is(err, errStopped) {
				t.Error(err)
			}
		}
		return nil
	})
	if !errors.Is(first, move.ErrTaken) {
		t.Errorf("the first one: %v, want %v", first, move.ErrTaken)
	}
	// Both at once, without an order.
	results := make(chan error, 2)
	for range 2 {
		go func() { results <- b.moveOver(b.conns, b.subject(), "b", func(move.Step) error { return nil }) }()
	}
	for range 2 {
		if err := <-results; err != nil && !errors.Is(err, move.ErrTaken) && !errors.Is(err, move.ErrThere) {
			t.Error(err)
		}
	}
	if err := b.move(b.subject(), "b", nil); err != nil && !errors.Is(err, move.ErrThere) {
		t.Error(err)
	}
	if here, left := b.count("b", b.acme), b.count("a", b.acme); here != 4 || left != 0 {
		t.Errorf("%d records in b and %d in a, want 4 and none", here, left)
	}
}

// Somebody says of each table what a move does with it.
func TestEveryTable(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	var missing []string
	b := &bed{T: t}
	b.must(conn.QueryRow(t.Context(), "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase()"+
		" AND engine LIKE '%MergeTree' AND name NOT IN $1", move.Tables()).Scan(&missing))
	if len(missing) > 0 {
		t.Errorf("nobody says whether a move copies %q", strings.Join(missing, ", "))
	}
}
