package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// To find rows without an id PostgreSQL may have to compute the ids of the whole table. What changes meanwhile is
// copied, whether there are full comparisons or not.
func TestPollingDoesNotWaitForRowsWithoutAnID(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, time.Hour} {
		b := newBed(t)
		b.insert("acme", 1, 30)
		b.do(`ALTER TABLE runs DROP CONSTRAINT runs_pkey; ALTER TABLE runs ALTER run_id DROP NOT NULL;
			UPDATE runs SET updated_at = '2026-01-01Z';
			INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
				VALUES ('acme', NULL, lpad('1', 32, '0')::uuid, 'RUNNING', '2026-01-01Z', '2026-01-01Z');
			CREATE TABLE slow AS SELECT false AS set;
			CREATE FUNCTION computed(id uuid, at timestamptz) RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN
				WHILE at < '2026-01-02Z' AND (SELECT set FROM slow) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN id; END $$`)
		b.open(b.server.URL(), strings.Replace(postgres.DefaultMapping, "run_id, agent_id, kind",
			"computed(run_id, updated_at) AS run_id, agent_id, kind", 1))
		b.copied()
		b.do("UPDATE slow SET set = true")
		status, stop := b.start(func(o *worker.Options) { o.ReconcileEvery = every })
		b.until("the ids of the whole table are computed", func() bool {
			return b.sourceCount("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runlens' AND "+
				"wait_event = 'PgSleep'") > 0
		})
		b.insert("acme", 31, 10)
		b.until("changes are copied", func() bool { return b.count("SELECT count() FROM runs FINAL") == 40 })
		rejected := func() int64 { return status.Report().Kinds[normalize.KindRun].Rejected }
		if n := rejected(); n != 0 {
			t.Errorf("%d rows were rejected that could not be read", n)
		}
		b.do("UPDATE slow SET set = false")
		b.until("the row is rejected", func() bool { return rejected() == 1 })
		stop()
	}
}
