package worker_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// A comparison that finds differences on many days reads each organization of the source a few times, and not once a
// day; and copies everything again.
func TestDifferencesOfManyDays(t *testing.T) {
	const days = 40
	b := newBed(t)
	b.insert("acme", 1, 24*days)
	b.source.Close()
	b.do("UPDATE runs SET updated_at = '2026-01-01Z'; UPDATE attributions SET updated_at = '2026-01-01Z'; " +
		"ANALYZE; SELECT pg_stat_reset()")
	b.open(b.server.URL(), postgres.DefaultMapping)
	b.copyOnce(nil)
	for _, table := range []string{"runs", "attributions"} {
		if err := b.store.Exec(t.Context(), "TRUNCATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
	status, stop := b.start(func(o *worker.Options) {
		o.Overlap, o.PollInterval, o.ReconcileEvery = 0, time.Hour, time.Hour
	})
	b.until("compared", func() bool { return status.Report().Reconcile != nil })
	stop()
	if r := status.Report().Reconcile; r.Repaired != 2*24*days || r.Differed < 2*days {
		t.Errorf("the comparison: %+v", r)
	}
	b.untilEqual()
	b.source.Close()
	scans := func() uint64 {
		return b.sourceCount("SELECT sum(seq_scan + idx_scan)::bigint FROM pg_stat_user_tables WHERE relname = 'runs'")
	}
	b.until("the sessions have ended", func() bool {
		return b.sourceCount("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runlens'") == 0
	})
	if n := scans(); n >= days {
		t.Errorf("the table was read %d times", n)
	}
}
