package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// Columns whose types could not be judged to the end are judged again before anything is read of them: here a time
// that has lost its zone.
func TestColumnsThatAreHalfJudged(t *testing.T) {
	address, conn := layout(t)
	do(t, conn, `INSERT INTO runs (organization_id, run_id, agent_id, status) VALUES
		('acme', gen_random_uuid(), gen_random_uuid(), 'RUNNING');
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$`)
	database := open(t, address+"&lock_timeout=100")
	if err := database.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(t.Context())
	// This table says what zones there are.
	const lock = "BEGIN; LOCK TABLE pg_catalog.pg_db_role_setting IN ACCESS EXCLUSIVE MODE"
	if _, err := holder.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	do(t, conn, "ALTER TABLE runs ALTER created_at TYPE timestamp")
	for _, passes := range []bool{true, false} {
		n, err := database.Changed(t.Context(), normalize.KindRun, postgres.Key{}, 10,
			func(*source.Record, postgres.Key) error { return nil })
		if n > 0 || err == nil || postgres.Retryable(err) != passes {
			t.Errorf("read %d, %v", n, err)
		}
		if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}
