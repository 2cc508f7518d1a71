package worker_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

// A checkpoint that cannot be read ends a worker, which names it. A reset takes it away, and no other one.
func TestResetOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 5)
	b.copied()
	for _, name := range []string{"worker:test:run", "worker:test:run:run"} {
		err := b.store.Exec(t.Context(), "INSERT INTO "+schema.TableCheckpoints+" (name, position, revision) VALUES ('"+
			name+"', '{\"until\":7}', 1000000)")
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := worker.Run(t.Context(), b.options(nil)); err == nil || !strings.Contains(err.Error(), `"worker:test:run"`) {
		t.Fatalf("got %v", err)
	}
	retry := write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: time.Minute}
	for _, want := range []bool{true, false} {
		if found, err := worker.Reset(t.Context(), b.store, retry, "test", normalize.KindRun); found != want || err != nil {
			t.Fatalf("%v, %v, want %v", found, err, want)
		}
	}
	status, stop := b.start(nil)
	b.untilCaughtUp(status, normalize.Kinds...)
	stop()
	if n := status.Report().Kinds[normalize.KindRun].Stored; n != 5 {
		t.Errorf("%d runs were copied again, want 5", n)
	}
	if n := b.count("SELECT count() FROM " + schema.TableCheckpoints + " WHERE name = 'worker:test:run:run'"); n != 1 {
		t.Errorf("the checkpoint of another source was changed: %d", n)
	}
}
