package worker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

// Rows without an id are rejected where more others than can be remembered have no time.
func TestRowsWithoutAnIDBesideManyWithoutATime(t *testing.T) {
	t.Parallel()
	server := postgrestest.New(t)
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), postgres.Layout+`; ALTER TABLE runs DROP CONSTRAINT runs_pkey;
		ALTER TABLE runs ALTER run_id DROP NOT NULL;
		INSERT INTO runs (organization_id, agent_id, status) VALUES ('acme', gen_random_uuid(), 'RUNNING')`); err != nil {
		t.Fatal(err)
	}
	mapping, err := postgres.ParseMapping(postgres.DefaultMapping)
	if err != nil {
		t.Fatal(err)
	}
	database, err := postgres.Open(t.Context(), server.URL(), mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	rejected := 0
	w := newWorker(Options{Source: database, Name: "test", Logger: slog.New(slog.DiscardHandler),
		Status: NewStatus(time.Now), OnReject: func(ingest.Reject) error { rejected++; return nil }})
	c := w.copiers[normalize.KindRun]
	for row := range uint64(maxRejectedOnce) {
		c.timeless.add(row)
	}
	for range 2 { // the second time it is known
		if err := c.rejectTimeless(t.Context()); err != nil || rejected != 1 {
			t.Errorf("%d rows were rejected, want 1: %v", rejected, err)
		}
	}
}
