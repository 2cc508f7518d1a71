package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
)

const newYork = `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET TimeZone = ''America/New_York''';
	END $$`

// run runs a worker that may end by itself, and returns what it ended with.
func (b *bed) run(change func(*worker.Options)) (status *worker.Status, ended <-chan error) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	options, result := b.options(change), make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		result <- worker.Run(ctx, options)
	}()
	b.Cleanup(func() { cancel(); <-done })
	return options.Status, result
}

// refused waits until a worker ended, because of a time without a zone.
func (b *bed) refused(ended <-chan error) {
	b.Helper()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "X AT TIME ZONE 'America/New_York' AS created_at") {
			b.Errorf("the worker ended: %v", err)
		}
	case <-time.After(patience):
		b.Error("the worker goes on")
	}
}

// A time that loses its zone while a worker runs is refused as it is at the start: nothing is stored that was taken for
// UTC.
func TestTimesThatLoseTheirZone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.do(newYork)
	b.insert("acme", 1, 10)
	status, ended := b.run(nil)
	b.untilCaughtUp(status, normalize.Kinds...)
	b.do("ALTER TABLE runs ALTER created_at TYPE timestamp; UPDATE runs SET status = 'FAILED', updated_at = now()")
	b.refused(ended)
	if n := b.count("SELECT countIf(created_at >= '2026-01-01 01:00:00') FROM runs FINAL"); n != 10 {
		t.Errorf("%d runs have the time that they have at the source, want 10", n)
	}
}

// A full comparison takes nothing for right that the start would have refused: here the zone of the database changed,
// which no column shows.
func TestZoneThatChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.do("ALTER TABLE runs ALTER created_at TYPE timestamp")
	b.insert("acme", 1, 10)
	status, ended := b.run(func(o *worker.Options) { o.ReconcileEvery = time.Second })
	b.until("a full comparison", func() bool { return status.Report().Reconcile != nil })
	b.do(newYork)
	b.refused(ended)
}

// A column that gets another type which can be read is read with it: ids that become texts are compared as texts.
func TestIDsThatBecomeTexts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 300)
	status, ended := b.run(func(o *worker.Options) {
		o.ReconcileEvery, o.DeleteMissing, o.DeleteMissingShare = time.Second, true, 1
	})
	b.until("a full comparison", func() bool { return status.Report().Reconcile != nil })
	// What differs in capital letters only would be missing if it were asked for as UUIDs are.
	b.do(`ALTER TABLE runs ALTER run_id TYPE text USING upper(run_id::text);
		UPDATE runs SET status = 'FAILED', updated_at = '2020-01-01'`)
	b.until("all runs were replaced or deleted", func() bool {
		r := status.Report()
		return r.Replaced+r.Reconcile.Deleted == 300
	})
	select {
	case err := <-ended:
		t.Errorf("the worker ended: %v", err)
	default:
	}
	if n := status.Report().Replaced; n != 300 {
		t.Errorf("%d runs were replaced, want 300", n)
	}
}
