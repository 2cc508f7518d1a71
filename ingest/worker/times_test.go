package worker_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
)

// A row without a usable time is rejected alone, with its id, and once; all others are copied, before and after.
func TestRowsWithoutATime(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.do(`ALTER TABLE runs ALTER updated_at DROP NOT NULL, ALTER created_at DROP NOT NULL;
		ALTER TABLE attributions ALTER updated_at DROP NOT NULL;
		UPDATE runs SET updated_at = 'infinity' WHERE run_id = lpad('1', 32, '0')::uuid;
		UPDATE runs SET updated_at = '-infinity' WHERE run_id = lpad('2', 32, '0')::uuid;
		UPDATE runs SET updated_at = NULL WHERE run_id = lpad('3', 32, '0')::uuid;
		UPDATE runs SET created_at = 'infinity' WHERE run_id = lpad('4', 32, '0')::uuid;
		UPDATE runs SET created_at = NULL WHERE run_id = lpad('5', 32, '0')::uuid;
		UPDATE runs SET created_at = '20000-01-01' WHERE run_id = lpad('6', 32, '0')::uuid;
		UPDATE runs SET updated_at = '0044-03-15 BC' WHERE run_id = lpad('7', 32, '0')::uuid;
		UPDATE runs SET updated_at = '294276-12-31 23:59:59.999999Z' WHERE run_id = lpad('d', 32, '0')::uuid;
		UPDATE agents SET deleted_at = 'infinity' WHERE agent_id = lpad('8', 32, '0')::uuid;
		UPDATE attributions SET occurred_at = '-infinity' WHERE attribution_id = lpad('9', 32, '0')::uuid;
		UPDATE attributions SET updated_at = NULL WHERE attribution_id = lpad('a', 32, '0')::uuid;
		UPDATE attributions SET updated_at = 'infinity' WHERE attribution_id = lpad('b', 32, '0')::uuid`)
	status, stop := b.start(func(o *worker.Options) { o.ReconcileEvery = 50 * time.Millisecond })
	b.untilEqual()
	b.insert("acme", 31, 10)
	b.untilEqual()
	// One without a time may come later, too. A full comparison finds it.
	b.do(`UPDATE runs SET updated_at = NULL WHERE run_id = lpad('c', 32, '0')::uuid`)
	b.until("the row is rejected", func() bool { return status.Report().Kinds[normalize.KindRun].Rejected == 9 })
	b.reconciled(status)
	stop()
	if n := status.Report().Kinds[normalize.KindRun].Rejected; n != 9 {
		t.Errorf("%d runs were rejected, want each of 9 once", n)
	}
	want := map[string]string{
		"000000000001": "updated_at", "000000000002": "updated_at", "000000000003": "updated_at",
		"000000000004": "created_at", "000000000005": "created_at",
		"000000000006": "created_at", "000000000007": "updated_at", "000000000008": "deleted_at",
		"000000000009": "occurred_at", "00000000000c": "updated_at",
		"00000000000d": "updated_at",
	}
	for _, r := range b.rejected {
		id := ""
		for i := range want {
			if strings.Contains(string(r.Record), `_id":"00000000-0000-0000-0000-`+i+`"`) && want[i] == r.Field {
				id = i
			}
		}
		if id == "" {
			t.Errorf("rejected: %s %s %s", r.Field, r.Error, r.Record)
		}
		delete(want, id)
	}
	if len(want) != 0 {
		t.Errorf("not rejected: %v", want)
	}
	// What a run or an agent was before stays stored; of attributions updated_at is no field.
	for table, n := range map[string]uint64{"agents": 39, "runs": 32, "attributions": 39} {
		if got := b.count("SELECT count() FROM " + table + " FINAL"); got != n {
			t.Errorf("%d %s, want %d", got, table, n)
		}
	}
}

// reconciled waits for two full comparisons, so that one has begun and ended since.
func (b *bed) reconciled(status *worker.Status) {
	b.Helper()
	for range 2 {
		var last time.Time
		if r := status.Report().Reconcile; r != nil {
			last = r.EndedAt
		}
		b.until("a full comparison ends", func() bool {
			r := status.Report().Reconcile
			return r != nil && r.EndedAt.After(last)
		})
	}
}

// Polling reads rows without a time in its first pass and never again.
func TestPollingLeavesRowsWithoutATimeAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.do(`ALTER TABLE runs ALTER updated_at DROP NOT NULL;
		UPDATE runs SET updated_at = NULL WHERE get_byte(uuid_send(run_id), 15) < 5;
		UPDATE runs SET updated_at = 'infinity' WHERE get_byte(uuid_send(run_id), 15) BETWEEN 5 AND 9;
		CREATE TABLE trap AS SELECT false AS set;
		CREATE FUNCTION trapped(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			IF (SELECT set FROM trap) THEN RAISE 'a row without a time was read'; END IF; RETURN $1; END $$`)
	b.open(b.server.URL(), strings.Replace(postgres.DefaultMapping, "kind, parent_run_id, status,",
		"kind, parent_run_id, "+"CASE WHEN isfinite(updated_at) THEN status ELSE trapped(status) END AS status,", 1))
	ctx, cancel := context.WithCancel(t.Context())
	status, ended := worker.NewStatus(time.Now), make(chan error, 1)
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Source: b.source, Name: "test", Conn: b.store, Logger: slog.New(slog.DiscardHandler), Status: status,
			PollInterval: 10 * time.Millisecond, Overlap: time.Second, OnReject: func(ingest.Reject) error { return nil },
		})
	}()
	b.untilCaughtUp(status, normalize.KindRun)
	if n := status.Report().Kinds[normalize.KindRun].Rejected; n != 9 {
		t.Errorf("%d runs were rejected, want 9", n)
	}
	b.do("UPDATE trap SET set = true")
	b.overlapped(status, 1)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A row without an id or an organization is rejected alone, and once, however many there are and whatever their time
// is; others that changed at the same instant are copied.
func TestRowsWithoutAnID(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	without := func(organization, id string) {
		b.do(`INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
			SELECT ` + organization + `, ` + id + `, lpad('1', 32, '0')::uuid, 'RUNNING', '2026-01-01Z', updated_at
				FROM unnest(ARRAY['2026-01-01Z', '2026-01-01Z', NULL, 'infinity', '-infinity']::timestamptz[]) AS updated_at`)
	}
	b.do(`ALTER TABLE runs DROP CONSTRAINT runs_pkey;
		ALTER TABLE runs ALTER organization_id DROP NOT NULL, ALTER run_id DROP NOT NULL, ALTER updated_at DROP NOT NULL;
		UPDATE runs SET updated_at = '2026-01-01Z'`)
	without("'acme'", "NULL")
	without("NULL", "lpad('1', 32, '0')::uuid")
	status, stop := b.start(func(o *worker.Options) { o.ReconcileEvery = 50 * time.Millisecond })
	b.untilEqual()
	rejected := func() int64 { return status.Report().Kinds[normalize.KindRun].Rejected }
	b.until("the rows are rejected", func() bool { return rejected() == 10 })
	b.reconciled(status)
	// They may come later, too. A full comparison finds them.
	without("NULL", "NULL")
	b.until("the rows are rejected", func() bool { return rejected() == 15 })
	b.reconciled(status)
	stop()
	fields := map[string]int{}
	for _, r := range b.rejected {
		fields[r.Field]++
	}
	if want := map[string]int{"organization_id": 10, "run_id": 5}; rejected() != 15 || !maps.Equal(fields, want) {
		t.Errorf("%d were rejected, for %v, want 15 for %v", rejected(), fields, want)
	}
	if n := b.count("SELECT count() FROM runs FINAL"); n != 30 {
		t.Errorf("%d runs, want 30", n)
	}
}
