package worker

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/olap/olaptest"
)

// A page that was read before the source went back to an older version does not bring the newer one back.
func TestCopyInFlight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := postgrestest.New(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(ctx) })
		return conn
	}
	conn, gate := connect(), connect()
	exec := func(c *pgx.Conn, sql string) {
		t.Helper()
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(conn, postgres.Layout)
	// Reading a page, and nothing else, waits at the gate when it has its snapshot and a first row.
	exec(conn, `CREATE FUNCTION gate(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('enable_seqscan') = 'off' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF; RETURN $1; END $$`)
	id := uuid.New()
	exec(
		conn,
		`SET session_replication_role = replica;
		INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
		VALUES ('acme', '`+id.String()+`', gen_random_uuid(), 'COMPLETED', '2026-01-01', '2026-01-03')`,
	)
	mapping, err := postgres.ParseMapping(
		strings.Replace(postgres.DefaultMapping, "kind, parent_run_id, status,",
			"kind, parent_run_id, gate(status) AS status,", 1),
	)
	if err != nil {
		t.Fatal(err)
	}
	source, err := postgres.Open(ctx, server.URL(), mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	store := olaptest.OpenStore(t).Conn()
	w := newWorker(
		Options{
			Source: source,
			Name:   "test",
			Conn:   store,
			Logger: slog.New(slog.DiscardHandler),
			Status: NewStatus(time.Now),
		},
	)

	exec(gate, "SELECT pg_advisory_lock(7)")
	copied := make(chan error, 1)
	c := w.copiers[normalize.KindRun]
	go func() {
		_, _, err := c.page(ctx, source.Changed, postgres.Key{})
		copied <- err
	}()
	olaptest.Until(t, "the page is being read", func() bool {
		var waiting bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT "+
			"granted)").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting
	})
	exec(conn, "UPDATE runs SET status = 'FAILED', updated_at = '2026-01-02'")
	taken := make(chan error, 1)
	go func() {
		part := verify.Part{Organization: "acme", Kind: normalize.KindRun}
		taken <- w.take(ctx, part, []uuid.UUID{id}, nil, &ReconcileStatus{})
	}()
	// The comparison either waits for the page, as it must, or it is done before it.
	olaptest.Until(t, "the comparison waits or is done", func() bool {
		if len(taken) > 0 {
			return true
		}
		if c.inFlight.TryRLock() {
			c.inFlight.RUnlock()
			return false
		}
		return true
	})
	exec(gate, "SELECT pg_advisory_unlock(7)")
	for _, ended := range []chan error{copied, taken} {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	report, err := verify.Compare(ctx, verify.Options{Source: verify.Postgres{Database: source}, Conn: store, MaxIDs: 1})
	if err != nil || len(report.Differences) != 0 || report.Rows != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
