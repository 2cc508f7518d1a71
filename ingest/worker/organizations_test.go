package worker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/worker"
)

// A source whose organizations have another type than text shares a store with organizations that this type has no
// value for. They are not its own, and stay.
func TestOrganizationsOfAnotherType(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.copied()
	b.do(`TRUNCATE agents, runs, attributions;
		ALTER TABLE agents ALTER organization_id TYPE uuid USING organization_id::uuid;
		ALTER TABLE runs ALTER organization_id TYPE uuid USING organization_id::uuid;
		ALTER TABLE attributions ALTER organization_id TYPE uuid USING organization_id::uuid`)
	const own = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	b.insert(own, 1, 20)
	status, stop := b.start(func(o *worker.Options) {
		o.ReconcileEvery, o.DeleteMissing = 500*time.Millisecond, true
	})
	b.reconciled(status)
	// A version that the source no longer has is replaced.
	b.do("UPDATE agents SET name = 'Bea', updated_at = '2026-01-01Z' WHERE agent_id = lpad('1', 32, '0')::uuid")
	b.until("the version is replaced", func() bool {
		return !slices.ContainsFunc(b.differences(), func(d verify.Difference) bool { return d.Organization == own })
	})
	stop()
	for organization, want := range map[string]uint64{"acme": 30, own: 20} {
		for _, table := range []string{"agents", "runs", "attributions"} {
			n := b.count("SELECT count() FROM " + table + " FINAL WHERE organization_id = '" + organization + "'")
			if n != want {
				t.Errorf("%d %s of %s, want %d", n, table, organization, want)
			}
		}
	}
}
