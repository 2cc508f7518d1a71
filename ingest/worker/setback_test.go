package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// shiftable makes the source's clock one that can be set, for whoever connects from then on.
func (b *bed) shiftable() {
	b.Helper()
	b.do(`CREATE SCHEMA shifted; CREATE TABLE shifted.clock AS SELECT interval '0' AS shift;
		CREATE FUNCTION shifted.statement_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS 'SELECT pg_catalog.statement_timestamp() + shift FROM shifted.clock';
		DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET search_path = shifted, pg_catalog, public';
			END $$`)
	b.open(b.server.URL(), postgres.DefaultMapping)
}

// setClock sets the source's clock, and inserts a run, at one instant.
func (b *bed) setClock(shift string, run int) {
	b.Helper()
	b.do("BEGIN; UPDATE shifted.clock SET shift = '" + shift + "'; " + insertNow(run) + "; COMMIT")
}

// insertNow inserts a run that has the source's clock.
func insertNow(run int) string {
	return fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
		SELECT 'acme', lpad('%d', 32, '0')::uuid, gen_random_uuid(), 'RUNNING', '2026-01-01Z', statement_timestamp()`, run)
}

// What changes after the source's clock was set back is copied without a full comparison, also where no worker runs
// meanwhile. Nothing of it is said to be certain, also by a checkpoint that the clock has passed again.
func TestClockOfTheSourceSetBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	b.shiftable()
	// Between two polls there is time to set the clock back.
	options := func(o *worker.Options) { o.Overlap, o.PollInterval = 0, 500*time.Millisecond }
	status, stop := b.start(options)
	b.untilCaughtUp(status, normalize.Kinds...)
	b.untilEqual()
	b.setClock("-1 hour", 100)
	b.untilEqual()
	// In the middle of a pass, too, and where a transaction that began before writes times of after. All passes wait for
	// the clock when the table is locked: one that has read the old clock would wait for the table until the end.
	writer, setter := b.connect(), b.connect()
	b.exec(writer, "BEGIN")
	b.exec(setter, "BEGIN; UPDATE shifted.clock SET shift = '-2 hours'; LOCK TABLE shifted.clock")
	b.until("all passes wait for the clock", func() bool {
		return b.sourceCount("SELECT count(*) FROM pg_locks WHERE relation = 'shifted.clock'::regclass AND NOT granted") ==
			uint64(len(normalize.Kinds))
	})
	b.exec(writer, "LOCK TABLE runs")
	b.exec(setter, "COMMIT")
	b.until("nothing of the last two hours is certain", func() bool {
		return time.Since(certainUntil(status)) > 2*time.Hour
	})
	b.exec(writer, insertNow(101)+"; COMMIT")
	b.untilEqual()
	stop()

	b.setClock("-30 minutes", 102)
	b.setClock("0", 103)
	status, stop = b.start(options)
	b.untilCaughtUp(status, normalize.Kinds...)
	b.untilEqual()
	stop()

	b.setClock("-3 hours", 104)
	b.start(options)
	b.untilEqual()
}
