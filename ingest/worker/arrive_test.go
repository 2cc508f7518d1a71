package worker_test

import (
	"context"
	"log/slog"
	"testing"

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

// arrive notes, as a move does, that nothing was copied of organizations that are on their way into the store.
func (b *bed) arrive() {
	b.Helper()
	for _, kind := range normalize.Kinds {
		name := schema.CheckpointArrived + "1f:" + schema.CheckpointOfWorkers + "test:" + string(kind)
		if err := b.log().Save(b.Context(), name, map[string]string{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A worker copies what it passed over before an organization was moved to its cell, and which the worker of the old
// cell had not copied yet; and it does so once.
func TestWhatArrives(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	b.insert("globex", 1, 10)
	// Long ago, so that no overlap finds it.
	b.do("UPDATE agents SET updated_at = '2025-01-01'; UPDATE runs SET updated_at = '2025-01-01'")
	run := func(owns func(schema.OrganizationID) bool) uint64 {
		b.Helper()
		status, stop := b.start(func(o *worker.Options) { o.Owns = owns })
		b.until("caught up", func() bool { return status.Report().Kinds[normalize.KindRun].CaughtUp })
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
	b.insert("acme", 1, 5)
	b.insert("moved", 6, 5)
	b.do("UPDATE agents SET updated_at = '2026-01-02'; UPDATE runs SET updated_at = '2026-01-02';" +
		" UPDATE attributions SET updated_at = '2026-01-02'")
	run := func(here, allHere bool) {
		b.Helper()
		status, stop := b.start(func(o *worker.Options) {
			o.Owns = func(id schema.OrganizationID) bool { return id == "acme" || here }
			o.AllHere = func(context.Context) (bool, error) { return allHere, nil }
		})
		b.until("all kinds were copied", func() bool { return status.Ready() == nil })
		stop()
	}
	const (
		stored     = "SELECT count() FROM runs FINAL WHERE organization_id = 'moved'"
		unfinished = "SELECT count() FROM replacements"
	)
	run(false, true)
	b.arrive()
	if err := b.store.Exec(t.Context(), "INSERT INTO replacements (replacement, source, organization_id, kind, id)"+
		" VALUES (7, 'test', 'moved', 'run', '00000000-0000-0000-0000-000000000006')"); err != nil {
		t.Fatal(err)
	}
	run(false, false)
	if n := b.count(unfinished); n != 1 {
		t.Errorf("%d replacements of an organization that is not here yet, want 1", n)
	}
	if n := b.count(stored); n != 0 {
		t.Fatalf("%d runs of an organization that is not here yet", n)
	}
	run(true, true)
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

// A worker has gone back. What one before it had sent, further on, is stored only then: it counts less.
func TestACheckpointThatComesLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const name = "worker:x:run"
	var at int
	save := func(save func(context.Context, string, any) error, position int) {
		b.Helper()
		if err := save(t.Context(), name, position); err != nil {
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
	save(before.Save, 1)
	load(after)
	save(after.SaveBack, 0)
	save(before.Save, 2)
	if load(b.log()); at != 0 {
		t.Errorf("the next worker begins at %d, want 0", at)
	}
}
