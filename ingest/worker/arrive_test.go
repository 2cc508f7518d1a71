package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

// log has the checkpoints of the store.
func (b *bed) log() *checkpoint.Log {
	return checkpoint.NewLog(b.store, write.Retry{Logger: slog.New(slog.DiscardHandler)})
}

// note notes, as a move does, how far a source had been copied.
func (b *bed) note(source string, kind normalize.Kind, at map[string]any) {
	b.Helper()
	name := schema.CheckpointArrived + "1f:" + schema.CheckpointOfWorkers + source + ":" + string(kind)
	if err := b.log().Save(b.Context(), name, at); err != nil {
		b.Fatal(err)
	}
}

// arrive notes that nothing was copied of organizations that are on their way into the store.
func (b *bed) arrive() {
	b.Helper()
	for _, kind := range normalize.Kinds {
		b.note("test", kind, map[string]any{})
	}
}

// takeAway clears the notes.
func (b *bed) takeAway() {
	b.Helper()
	names, err := b.log().Names(b.Context(), schema.CheckpointArrived)
	for _, name := range names {
		err = errors.Join(err, b.log().Clear(b.Context(), name))
	}
	if err != nil {
		b.Fatal(err)
	}
}

// goBack saves the checkpoints of a worker that goes back to the beginning.
func (b *bed) goBack() {
	b.Helper()
	for _, kind := range normalize.Kinds {
		log := b.log()
		if _, _, err := log.Load(b.Context(), checkpointOf(kind), &map[string]any{}); err != nil {
			b.Fatal(err)
		}
		if err := log.Save(b.Context(), checkpointOf(kind), map[string]string{}); err != nil {
			b.Fatal(err)
		}
	}
}

func checkpointOf(kind normalize.Kind) string {
	return schema.CheckpointOfWorkers + "test:" + string(kind)
}

// insertLongAgo is insert of records that changed so long ago that no overlap finds them.
func (b *bed) insertLongAgo(organization string, first, n int) {
	b.Helper()
	b.insert(organization, first, n)
	for table := range idsOf {
		b.do("UPDATE " + table + " SET updated_at = '2026-01-02'")
	}
}

func onlyAcme(o *worker.Options) {
	o.Owns = func(id schema.OrganizationID) bool { return id == "acme" }
}

// copyOnce runs a worker until it has copied all kinds.
func (b *bed) copyOnce(change func(*worker.Options)) {
	b.Helper()
	status, stop := b.start(change)
	b.until("all kinds were copied", func() bool { return status.Ready() == nil })
	stop()
}

// A worker copies what it passed over before an organization was moved to its cell, and which the worker of the old
// cell had not copied yet; and it does so once.
func TestWhatArrives(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 50)
	b.insertLongAgo("globex", 1, 10)
	run := func(owns func(schema.OrganizationID) bool) uint64 {
		b.Helper()
		status, stop := b.start(func(o *worker.Options) { o.Owns = owns })
		b.untilCaughtUp(status, normalize.KindRun)
		stop()
		return uint64(status.Report().Kinds[normalize.KindRun].Stored)
	}
	all := func(schema.OrganizationID) bool { return true }
	if n := run(func(o schema.OrganizationID) bool { return o == "globex" }); n != 10 {
		t.Errorf("%d runs were copied before the move", n)
	}
	b.arrive()
	if n := run(all); n != 60 {
		t.Errorf("%d runs were copied after the move, want all 60", n)
	}
	if n := run(all); n != 0 {
		t.Errorf("%d runs were copied once more", n)
	}
	if n := b.count("SELECT count() FROM runs FINAL"); n != 60 {
		t.Errorf("%d runs", n)
	}
}

// An organization arrives whose changes its old cell's worker had not copied, and one of whose replacements had not
// ended. A worker that begins while it is on its way does nothing with either; the one that begins when it is here goes
// back, and ends the replacement.
func TestAWorkerThatBeginsWhileAnOrganizationArrives(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 5)
	b.insertLongAgo("moved", 6, 5)
	run := func(here, arriving bool) {
		b.Helper()
		b.copyOnce(func(o *worker.Options) {
			o.Owns = func(id schema.OrganizationID) bool { return id == "acme" || here }
			o.Arriving = func(context.Context) (bool, error) { return arriving, nil }
		})
	}
	const (
		stored     = "SELECT count() FROM runs FINAL WHERE organization_id = 'moved'"
		unfinished = "SELECT count() FROM replacements"
	)
	run(false, false)
	b.arrive()
	if err := b.store.Exec(t.Context(), "INSERT INTO replacements (replacement, source, organization_id, kind, id)"+
		" VALUES (7, 'test', 'moved', 'run', '00000000-0000-0000-0000-000000000006')"); err != nil {
		t.Fatal(err)
	}
	run(false, true)
	if n := b.count(unfinished); n != 1 {
		t.Errorf("%d replacements of an organization that is not here yet, want 1", n)
	}
	if n := b.count(stored); n != 0 {
		t.Fatalf("%d runs of an organization that is not here yet", n)
	}
	run(true, false)
	if n := b.count(stored); n != 5 {
		t.Errorf("%d runs of the organization that arrived, want 5", n)
	}
	if n := b.count(unfinished); n != 0 {
		t.Errorf("%d replacements of the organization that arrived did not end", n)
	}
	left, err := b.log().Names(t.Context(), schema.CheckpointArrived)
	if err != nil || len(left) != 0 {
		t.Errorf("notes of what arrived are left: %q, %v", left, err)
	}
}

// A worker does not know yet that an organization arrived when another one goes back for it and is killed. It finds
// that out before it copies past what the organization needs.
func TestAWorkerThatBeginsBeforeAnOrganizationArrived(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 5)
	b.insertLongAgo("moved", 6, 5)
	const stored = "SELECT count() FROM runs FINAL WHERE organization_id = 'moved'"
	b.copyOnce(onlyAcme)
	b.goBack()
	options := b.options(onlyAcme)
	options.Arriving = func(context.Context) (bool, error) { return false, worker.ErrPlacement }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, options) }()
	b.until("the worker ended, or copied", func() bool { return len(ended) > 0 || options.Status.Ready() == nil })
	cancel()
	if err := <-ended; !errors.Is(err, worker.ErrPlacement) {
		t.Errorf("the worker that does not know of the organization ended with %v", err)
	}
	b.copyOnce(nil)
	if n := b.count(stored); n != 5 {
		t.Errorf("%d runs of the organization that arrived, want 5", n)
	}
}

// Two workers know that an organization arrived. One takes the notes away, and is killed, when the other has just read
// its checkpoint, of before.
func TestNotesAreReadBeforeTheCheckpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 5)
	b.insertLongAgo("moved", 6, 5)
	b.copyOnce(onlyAcme)
	b.arrive()
	takeAway := sync.OnceFunc(func() {
		b.goBack()
		b.takeAway()
	})
	b.copyOnce(func(o *worker.Options) {
		o.Conn = &listeningConn{Conn: b.store, read: checkpointOf(normalize.KindRun), then: takeAway}
	})
	if n := b.count("SELECT count() FROM runs FINAL WHERE organization_id = 'moved'"); n != 5 {
		t.Errorf("%d runs of the organization that arrived, want 5", n)
	}
}

// A listeningConn is a store which tells when a checkpoint was read.
type listeningConn struct {
	driver.Conn
	read string
	then func()
}

func (c *listeningConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	row := c.Conn.QueryRow(ctx, query, args...)
	if slices.Contains(args, any(clickhouse.Named("name", c.read))) {
		c.then()
	}
	return row
}

// A worker that knows of an organization has gone back for it. What one that does not know of it saves further on
// counts less, although it is stored only then.
func TestACheckpointThatComesLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const name = "worker:x:run"
	var at int
	save := func(log *checkpoint.Log, position int) {
		b.Helper()
		if err := log.Save(t.Context(), name, position); err != nil {
			t.Fatal(err)
		}
	}
	load := func(log *checkpoint.Log) {
		b.Helper()
		if _, _, err := log.Load(t.Context(), name, &at); err != nil {
			t.Fatal(err)
		}
	}
	before, after := b.log(), b.log()
	before.Epoch, after.Epoch = 7, 8
	save(before, 1)
	load(after)
	save(after, 0)
	save(before, 2)
	save(before, 3)
	if load(b.log()); at != 0 {
		t.Errorf("the next worker begins at %d, want 0", at)
	}
}
