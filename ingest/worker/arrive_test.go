package worker_test

import (
	"log/slog"
	"testing"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

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
	log := checkpoint.NewLog(b.store, write.Retry{Logger: slog.New(slog.DiscardHandler)})
	for _, kind := range []normalize.Kind{normalize.KindAgent, normalize.KindRun, normalize.KindAttribution} {
		name := schema.CheckpointArrived + "1f:" + schema.CheckpointOfWorkers + "test:" + string(kind)
		if err := log.Save(t.Context(), name, map[string]string{}); err != nil {
			t.Fatal(err)
		}
	}
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
