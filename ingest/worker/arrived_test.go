package worker_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// An organization arrives whose changes its old cell's worker had not copied. A worker begins while it is on its way,
// and another one, which has it, when it is there: that one still goes back.
func TestAWorkerThatBeginsWhileAnOrganizationArrives(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 5)
	b.insert("moved", 6, 5)
	b.do("UPDATE agents SET updated_at = '2026-01-02'; UPDATE runs SET updated_at = '2026-01-02';" +
		" UPDATE attributions SET updated_at = '2026-01-02'")
	var here, allHere atomic.Bool
	begin := func() (stop func()) {
		status, stop := b.start(func(o *worker.Options) {
			owns := here.Load()
			o.Owns = func(id schema.OrganizationID) bool { return id == "acme" || owns }
			o.AllHere = func(context.Context) (bool, error) { return allHere.Load(), nil }
		})
		b.until("all kinds were copied", func() bool { return status.Ready() == nil })
		return stop
	}
	const stored = "SELECT count() FROM runs FINAL WHERE organization_id = 'moved'"
	allHere.Store(true)
	begin()()
	if err := b.store.Exec(context.Background(), "INSERT INTO checkpoints (name, position, revision)"+
		" SELECT DISTINCT concat('arrived:7:', name), '{}', 1 FROM checkpoints WHERE name LIKE 'worker:%'"); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Exec(context.Background(), "INSERT INTO replacements (replacement, source, organization_id, kind,"+
		" id) VALUES (7, 'test', 'moved', 'run', '00000000-0000-0000-0000-000000000006')"); err != nil {
		t.Fatal(err)
	}
	const unfinished = "SELECT count() FROM replacements"
	allHere.Store(false)
	begin()()
	if n := b.count(unfinished); n != 1 {
		t.Errorf("%d replacements of an organization that is not here yet, want 1", n)
	}
	if n := b.count(stored); n != 0 {
		t.Fatalf("%d runs of an organization that is not here yet", n)
	}
	allHere.Store(true)
	here.Store(true)
	begin()()
	if n := b.count(stored); n != 5 {
		t.Errorf("%d runs of the organization that arrived, want 5", n)
	}
	if n := b.count(unfinished); n != 0 {
		t.Errorf("%d replacements of the organization that arrived did not end", n)
	}
	if n := b.count("SELECT countIf(position != '') FROM (SELECT argMax(position, revision) AS position FROM checkpoints" +
		" WHERE name LIKE 'arrived:%' GROUP BY name)"); n != 0 {
		t.Errorf("%d notes of what arrived are left", n)
	}
}

// A worker has gone back. What one before it had sent, further on, is stored only then: it counts less.
func TestACheckpointThatComesLate(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	open := func() *checkpoint.Log {
		return checkpoint.NewLog(conn, write.Retry{Logger: slog.New(slog.DiscardHandler)})
	}
	before, after := open(), open()
	var at int
	for _, err := range []error{
		before.Save(t.Context(), "worker:x:run", 1),
		func() error { _, _, err := after.Load(t.Context(), "worker:x:run", &at); return err }(),
		after.SaveBack(t.Context(), "worker:x:run", 0),
		before.Save(t.Context(), "worker:x:run", 2),
		func() error { _, _, err := open().Load(t.Context(), "worker:x:run", &at); return err }(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if at != 0 {
		t.Errorf("the next worker begins at %d, want 0", at)
	}
}
