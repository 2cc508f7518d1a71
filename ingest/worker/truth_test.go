package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/ingest/worker"
)

// reconcile runs a worker for one full comparison.
func (b *bed) reconcile(change func(*worker.Options)) worker.ReconcileStatus {
	b.Helper()
	status, stop := b.start(func(o *worker.Options) {
		o.ReconcileEvery, o.DeleteMissingShare = time.Hour, 0.1
		if change != nil {
			change(o)
		}
	})
	b.until("a full comparison", func() bool { return status.Report().Reconcile != nil })
	stop()
	b.metrics = metrics(b, status)
	return *status.Report().Reconcile
}

// metrics are the values of all metrics without labels.
func metrics(b *bed, status *worker.Status) map[string]float64 {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(status)
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if m := f.GetMetric(); len(m) == 1 && len(m[0].GetLabel()) == 0 {
			values[strings.TrimPrefix(f.GetName(), "runlens_worker_")] = m[0].GetGauge().
				GetValue() +
				m[0].GetCounter().
					GetValue()
		}
	}
	return values
}

// The source is right in a full comparison, also where its version is older than the stored one, where two versions
// have the same time, and where the event clock moved.
func TestSourceIsRight(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 100)
	// So long ago that polling does not come by.
	b.do(
		`UPDATE runs SET updated_at = '2026-02-01'; UPDATE agents SET updated_at = '2026-02-01'; UPDATE attributions SET ` +
			`updated_at = '2026-02-01'`,
	)
	b.copied()
	b.do(
		`UPDATE runs SET status = 'PENDING', updated_at = updated_at - interval '1 hour'
			WHERE get_byte(uuid_send(run_id), 15) <= 40;
		UPDATE runs SET status = 'PENDING' WHERE get_byte(uuid_send(run_id), 15) BETWEEN 41 AND 60;
		UPDATE runs SET status = 'CANCELLED' WHERE get_byte(uuid_send(run_id), 15) BETWEEN 61 AND 80;
		UPDATE runs SET created_at = created_at + interval '40 days' WHERE get_byte(uuid_send(run_id), 15) = 81;
		UPDATE agents SET name = 'A', updated_at = updated_at - interval '1 day'
			WHERE get_byte(uuid_send(agent_id), 15) <= 10;
		UPDATE attributions SET user_name = 'Ada' WHERE get_byte(uuid_send(attribution_id), 15) <= 5`,
	)
	found := b.reconcile(nil)
	if d := b.differences(); len(d) != 0 {
		t.Errorf("%d groups differ, the first is %+v", len(d), d[0])
	}
	// Polling reads the newest instant again when it begins, so it may copy the 20 cancelled runs first: they tie and win.
	// It may copy the run that moved, too, which then counts under its later clock.
	const least, ties = 60 + 10 + 5, 20 + 1
	if found.Replaced < least || found.Replaced > least+ties || found.Missing != 0 || found.Deleted != 0 ||
		b.metrics["reconcile_replaced_records_total"] != float64(found.Replaced) {
		t.Errorf("%+v, %v", found, b.metrics)
	}
	if n := b.refreshed("acme"); n != 100 {
		t.Errorf("%d runs, want 100", n)
	}
	if again := b.reconcile(nil); again.Differed != 0 || again.Replaced != 0 {
		t.Errorf("once more: %+v", again)
	}
}

// Only what the source does not have is deleted: not what breaks a rule there now, nor what it writes in another
// letter case, nor what belongs to an organization of another source.
func TestDeletesOnlyWhatIsAbsent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 300)
	b.insert("elsewhere", 1, 10)
	b.copied()
	b.do(
		`UPDATE runs SET status = 'STATUS_OF_TOMORROW', updated_at = clock_timestamp()
			WHERE organization_id = 'acme' AND get_byte(uuid_send(run_id), 15) BETWEEN 1 AND 9;
		DELETE FROM runs WHERE run_id = lpad('a', 32, '0')::uuid AND organization_id = 'acme'; DELETE FROM attributions
			WHERE attribution_id = lpad('b', 32, '0')::uuid;
		DELETE FROM agents WHERE organization_id = 'elsewhere'; DELETE FROM runs WHERE organization_id = 'elsewhere';
			DELETE FROM attributions WHERE organization_id = 'elsewhere';
		ALTER TABLE agents ALTER agent_id TYPE text USING upper(agent_id::text)`,
	)
	b.do(`UPDATE agents SET updated_at = 'infinity' WHERE agent_id = upper(lpad('c', 32, '0')::uuid::text)`)
	found := b.reconcile(func(o *worker.Options) { o.DeleteMissing = true })
	// The runs, and the agent without a time.
	invalid := int64(b.sourceCount("SELECT count(*) FROM runs WHERE status = 'STATUS_OF_TOMORROW'")) + 1
	if found.Deleted != 2 || found.Invalid != invalid || found.Refused != 0 || found.Rejected != invalid {
		t.Errorf("want %d invalid: %+v", invalid, found)
	}
	if n := b.count("SELECT count() FROM runs FINAL"); n != 309 {
		t.Errorf("%d runs are left, want 309", n)
	}
	if n := b.count("SELECT count() FROM agents FINAL"); n != 310 {
		t.Errorf("%d agents are left, want 310", n)
	}
}

// Many deletions at once are an accident until somebody says otherwise.
func TestDeletesAFewAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const n, gone = 1400, 1300
	b.insert("acme", 1, n)
	b.copied()
	b.do(
		fmt.Sprintf(
			"DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs LIMIT %d); DELETE FROM agents WHERE agent_id IN "+
				"(SELECT agent_id FROM agents LIMIT %d)",
			gone, n/10,
		),
	)
	found := b.reconcile(func(o *worker.Options) { o.DeleteMissing = true })
	if found.Missing != gone+n/10 || found.Refused != gone || found.Deleted != n/10 ||
		b.metrics["reconcile_refused_deletions"] != gone {
		t.Errorf("%+v, %v", found, b.metrics)
	}
	found = b.reconcile(func(o *worker.Options) { o.DeleteMissing, o.DeleteMissingShare = true, 1 })
	if found.Refused != 0 || found.Deleted != gone {
		t.Errorf("with DeleteMissing: %+v", found)
	}
	if d := b.differences(); len(d) != 0 {
		t.Errorf("%d groups differ", len(d))
	}
}
