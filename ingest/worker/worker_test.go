package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// A first copy, and then every kind of change, reach the store; rows of two organizations with the
// same ids stay apart.
func TestCopiesEverythingAndThenChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 500)
	b.insert("globex", 1, 300)
	status, _ := b.start(nil)
	b.untilEqual()
	if n := b.count("SELECT count() FROM runs FINAL"); n != 800 {
		t.Fatalf("%d runs, want 800", n)
	}
	b.insert("acme", 501, 20)
	b.do(
		`UPDATE runs SET status = 'COMPLETED', updated_at = clock_timestamp()
			WHERE organization_id = 'acme' AND get_byte(uuid_send(run_id), 15) < 9;
		UPDATE agents SET name = 'Renamed', deleted_at = now(), updated_at = clock_timestamp()
			WHERE organization_id = 'globex'`,
	)
	b.untilEqual()
	if n := b.count("SELECT count() FROM agents FINAL WHERE tupleElement(latest, 'name') = 'Renamed'"); n != 300 {
		t.Errorf("%d agents renamed, want 300", n)
	}
	b.until("every kind has caught up", func() bool {
		for _, kind := range normalize.Kinds {
			if k := status.Report().Kinds[kind]; !k.CaughtUp || k.LagSeconds == nil || k.Stored < 820 {
				return false
			}
		}
		return true
	})
}

// Rows of the overlap are not stored again at every poll.
func TestStoresNothingTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 100)
	status, stop := b.start(func(o *worker.Options) { o.Overlap = time.Hour })
	b.untilEqual()
	b.insert("acme", 101, 1) // a poll that found this one has read all others again
	b.until("the new run is stored",
		func() bool { return status.Report().Kinds[normalize.KindRun].Stored > 100 })
	stop()
	if after := status.Report().Kinds[normalize.KindRun]; after.Stored != 101 {
		t.Errorf("%d runs were stored, want each of 101 once", after.Stored)
	}
}

// What a transaction changed long before it committed is found without a full comparison.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	status, _ := b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.untilEqual()
	late := b.connect()
	tx, err := late.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// now() is the begin of the transaction.
	if _, err := tx.Exec(context.Background(), `UPDATE runs SET status = 'FAILED', updated_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.insert("acme", 11, 10) // committed later, with later times, but seen before
	b.until("the rows of the other transaction are stored",
		func() bool { return status.Report().Kinds[normalize.KindRun].Stored == 20 })
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.untilEqual()
}

// A row with a time in the future, from a clock that jumped, does not hide the rows after it; one that
// was written with a time long past is found by the full comparison.
func TestClocksThatJump(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	b.do(`UPDATE runs SET updated_at = now() + interval '1 year' WHERE run_id = lpad('1', 32, '0')::uuid`)
	_, stop := b.start(nil)
	b.untilEqual()
	b.insert("acme", 11, 10)
	b.untilEqual()
	stop()
	status, _ := b.start(nil) // its checkpoint must not lie in the future either
	b.insert("acme", 21, 10)
	b.untilEqual()

	b.untilCaughtUp(status, normalize.KindRun)
	b.do(`INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
		VALUES ('acme', gen_random_uuid(), gen_random_uuid(), 'FAILED', now(), '2020-01-01')`)
	_, _ = b.start(func(o *worker.Options) { o.Name, o.ReconcileEvery = "another", 10*time.Millisecond })
	b.untilEqual()
}

// A full comparison finds what polling cannot see, and deletes what the source deleted only with DeleteMissing.
func TestReconcile(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	b.copied()
	b.do(
		`DELETE FROM runs WHERE run_id = lpad('a', 32, '0')::uuid; DELETE FROM attributions WHERE attribution_id = ` +
			`lpad('b', 32, '0')::uuid`,
	)
	status, stop := b.start(func(o *worker.Options) { o.ReconcileEvery = time.Millisecond })
	b.until("a full comparison", func() bool { return status.Report().Reconcile != nil })
	if r := status.Report().Reconcile; r.Missing != 2 || r.Deleted != 0 ||
		b.count("SELECT count() FROM runs FINAL") != 50 {
		t.Errorf("without --delete-missing: %+v", r)
	}
	stop()
	_, _ = b.start(func(o *worker.Options) { o.ReconcileEvery, o.DeleteMissing = time.Millisecond, true })
	b.untilEqual()
}

// A worker that was stopped continues at its checkpoint.
func TestContinuesAtItsCheckpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 100)
	b.do(
		`UPDATE runs SET updated_at = '2025-01-01'; UPDATE runs SET updated_at = '2025-02-01' WHERE ` +
			`get_byte(uuid_send(run_id), 15) >= 90`,
	)
	b.copied()
	b.insert("acme", 101, 10)
	status, stop := b.start(nil)
	b.untilEqual()
	b.untilCaughtUp(status, normalize.KindRun)
	stop()
	// The first one had read everything up to its end, so that only what came later is read.
	if stored := status.Report().Kinds[normalize.KindRun].Stored; stored != 10 {
		t.Errorf("%d runs stored by the second worker, want 10", stored)
	}
}

// A checkpoint belongs to the mapping that was read: another one begins again, and so does the first one after it.
func TestAnotherMapping(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 500)
	b.open(b.server.URL(),
		strings.Replace(postgres.DefaultMapping, "FROM runs", "FROM runs WHERE get_byte(uuid_send(run_id), 15) < 50", 1))
	b.copied()
	b.do("UPDATE runs SET updated_at = '2025-01-01'")
	b.open(b.server.URL(), postgres.DefaultMapping)
	status, stop := b.start(nil)
	b.untilCaughtUp(status, normalize.KindRun)
	stop()
	if k := status.Report().Kinds[normalize.KindRun]; k.Stored != 500 || k.Checkpoint == nil || k.Mapping == "" {
		t.Errorf("%+v, want 500 runs and a checkpoint", k)
	}
	if n := b.count("SELECT uniqExact(run_id) FROM runs"); n != 500 {
		t.Errorf("%d runs, want 500", n)
	}
}

// Several workers on one source do no harm.
func TestSeveralWorkers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 1000)
	for range 3 {
		b.start(nil)
	}
	b.do(`UPDATE runs SET status = 'COMPLETED', updated_at = clock_timestamp()`)
	b.insert("globex", 1, 100)
	b.untilEqual()
}

// A record that breaks a rule is reported and counted, and the others are copied.
func TestRejectsOfAWorker(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	b.do(`UPDATE attributions SET user_identifier = 'nobody' WHERE attribution_id = lpad('3', 32, '0')::uuid`)
	status, stop := b.start(nil)
	b.untilCaughtUp(status, normalize.KindAttribution)
	stop()
	k := status.Report().Kinds[normalize.KindAttribution]
	if k.Stored != 9 || k.Rejected != 1 || len(b.rejected) != 1 || b.rejected[0].Field != "user_identifier" ||
		!strings.Contains(string(b.rejected[0].Record), `"user_identifier":"nobody"`) {
		t.Errorf("%+v, %+v", k, b.rejected)
	}
}

// A mapping that does not fit ends a worker at once, with a reason.
func TestMappingThatDoesNotFit(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for broken, says := range map[string]string{
		"SELECT * FROM agents, now()":                              "has the column now",
		"SELECT organization_id, agent_id, name, slug FROM agents": "lacks the column deleted_at",
		"SELECT * FROM nowhere":                                    "nowhere",
	} {
		mapping, err := postgres.ParseMapping(
			strings.Replace(postgres.DefaultMapping,
				"SELECT organization_id, agent_id, name, slug, deleted_at, updated_at\nFROM agents", broken, 1),
		)
		if err != nil {
			t.Fatal(err)
		}
		source, err := postgres.Open(context.Background(), b.server.URL(), mapping)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		err = worker.Run(
			context.Background(),
			worker.Options{
				Source: source,
				Conn:   b.store,
				Logger: slog.New(slog.DiscardHandler),
				Status: worker.NewStatus(time.Now),
			},
		)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", broken, err, says)
		}
	}
}

// Other tables are read with a mapping.
func TestMapping(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.do(
		`CREATE TABLE job (tenant int, id uuid, bot uuid, state int, who text,
			at timestamp, changed timestamptz DEFAULT now());
		INSERT INTO job SELECT 7, gen_random_uuid(), gen_random_uuid(), g % 2, 'x@y.example', '2026-03-01', now()
			FROM generate_series(1, 9) g`,
	)
	b.open(b.server.URL(), `-- record: agent
		SELECT * FROM agents
-- record: attribution
		SELECT * FROM attributions;
-- record: run
		SELECT 'tenant-' || tenant AS organization_id, id AS run_id, bot AS agent_id, 'agent' AS kind, NULL AS parent_run_id,
			CASE state WHEN 0 THEN 'FAILED' ELSE 'COMPLETED' END AS status, who AS initiator_identifier, NULL AS initiator_name,
			'external' AS initiator_type, at AS created_at, changed AS updated_at
		FROM job;`)
	b.start(nil)
	b.untilEqual()
	if n := b.count("SELECT count() FROM runs FINAL WHERE organization_id = 'tenant-7' AND created_at = '2026-03-01 " +
		"00:00:00'"); n != 9 {
		t.Errorf("%d runs, want 9", n)
	}
}
