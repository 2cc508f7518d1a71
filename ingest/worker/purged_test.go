package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// purge purges a person of acme.
func (b *bed) purge(who string) {
	if err := purge.Person("acme", who).Run(context.Background(), b.store, func(purge.Step) {}); err != nil {
		b.Error(err)
	}
}

// A person who is purged while a worker holds a page stays out, for polling and for the full comparison, which finds
// nothing to copy again.
func TestPurgedWhileAPageIsHeld(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 60)
	holding := olaptest.Hold(b.store)
	for table, who := range map[string]string{
		schema.TableRuns: "person1@example.com", schema.TableAttributions: "+15550101",
	} {
		holding.BeforeInsert(table, func() { b.purge(who) })
	}
	status, stop := b.start(func(o *worker.Options) { o.Conn, o.ReconcileEvery = holding, time.Hour })
	b.until("the first comparison has ended", func() bool { return status.Report().Reconcile != nil })
	stop()
	for _, left := range []string{
		"SELECT count() FROM attributions WHERE user_identifier = '+15550101'",
		"SELECT count() FROM runs WHERE tupleElement(record, 'initiator_identifier') = 'person1@example.com'",
	} {
		if n := b.count(left); n != 0 {
			t.Errorf("%d rows are left: %s", n, left)
		}
	}
	if d := b.differences(); len(d) != 0 {
		t.Errorf("%d groups differ", len(d))
	}
	report := status.Report()
	if r := report.Reconcile; r.Differed != 0 || r.Repaired != 0 || r.Replaced != 0 {
		t.Errorf("the comparison found %+v", r)
	}
	runs, records := report.Kinds[normalize.KindRun].Purged, report.Kinds[normalize.KindAttribution].Purged
	if runs != 12 || records != 7 || len(b.rejected) != 0 {
		t.Errorf("%d runs and %d records of purged people, %d rejects; want 12, 7 and 0", runs, records, len(b.rejected))
	}
}

// What the full comparison leaves out is counted like what polling does.
func TestPurgedWhileAComparisonCopies(t *testing.T) {
	b := newBed(t)
	b.insert("acme", 1, 10)
	holding := olaptest.Hold(b.store)
	status, stop := b.start(func(o *worker.Options) { o.Conn, o.ReconcileEvery = holding, 10*time.Millisecond })
	b.until("the first comparison has ended", func() bool { return status.Report().Reconcile != nil })
	var late atomic.Bool
	holding.BeforeInsert(schema.TableAttributions, func() {
		b.purge("late@example.com")
		late.Store(true)
	})
	// Polling does not see it: it changed long before the checkpoint.
	b.do(`INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type,
		run_initiation_type, source, occurred_at, updated_at) VALUES ('acme', gen_random_uuid(), gen_random_uuid(),
		gen_random_uuid(), 'late@example.com', 'initiated', 'human', 'web', '2020-01-01Z', '2020-01-01Z')`)
	const left = "SELECT count() FROM attributions WHERE user_identifier = 'late@example.com'"
	b.until("the record is left out", func() bool {
		return late.Load() && status.Report().Kinds[normalize.KindAttribution].Purged > 0 && b.count(left) == 0
	})
	stop()
	if n := status.Report().Kinds[normalize.KindAttribution].Purged; n != 1 {
		t.Errorf("%d records of purged people, want 1", n)
	}
}
