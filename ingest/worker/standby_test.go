package worker_test

import (
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// standby runs a standby of the source until the test ends, and returns its address.
func (b *bed) standby() string {
	b.Helper()
	standby, err := b.server.Standby(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			b.Error(err)
		}
	})
	return standby.URL()
}

// What a standby replays late is copied, however late; meanwhile the lag says how old its state is.
func TestStandbyThatLags(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	standby := b.standby()
	b.open(standby, postgres.DefaultMapping)
	status, _ := b.start(func(o *worker.Options) { o.Overlap = 0 })
	lag := func() float64 {
		if k := status.Report().Kinds[normalize.KindRun]; k.LagSeconds != nil {
			return *k.LagSeconds
		}
		return -1
	}
	b.untilEqual()
	b.until("caught up", func() bool { return lag() >= 0 })
	replica := b.connectTo(standby)
	b.exec(replica, "SELECT pg_wal_replay_pause()")
	b.insert("acme", 51, 20)
	b.until("the lag is that of the standby", func() bool { return lag() > 2 })
	if n := b.count("SELECT uniqExact(run_id) FROM runs"); n != 50 {
		t.Errorf("%d runs, want 50", n)
	}
	b.exec(replica, "SELECT pg_wal_replay_resume()")
	b.until("what came late is stored", func() bool { return b.count("SELECT uniqExact(run_id) FROM runs") == 70 })
	next := 71
	b.until("the lag ends", func() bool {
		b.insert("acme", next, 1) // so that there is something to replay
		next++
		return lag() < 2
	})
	b.untilEqual()
	if k := status.Report().Kinds[normalize.KindRun]; k.CertainUntil != nil || k.WaitsFor != postgres.Standby {
		t.Errorf("certain until %v, waits for %q", k.CertainUntil, k.WaitsFor)
	}
}
