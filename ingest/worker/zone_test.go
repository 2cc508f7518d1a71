package worker_test

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// A time without a zone means something only where all sessions have UTC. Elsewhere the worker refuses it, with the
// line that fixes the mapping; with that line times are right, changes are copied, and the index is used.
func TestTimesWithoutAZone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBed(t)
	b.do(`ALTER TABLE runs ALTER created_at TYPE timestamp, ALTER updated_at TYPE timestamp`)
	if err := b.source.Check(ctx); err != nil {
		t.Fatalf("where the database's zone is UTC: %v", err)
	}
	b.do(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET TimeZone = ''America/New_York'''; END $$`)
	b.insert("acme", 1, 50)
	mapping := func(created, updated string) string {
		return strings.Replace(postgres.DefaultMapping, "initiator_type, created_at, updated_at\nFROM runs",
			"initiator_type, "+created+", "+updated+"\nFROM runs", 1)
	}
	line := "created_at AT TIME ZONE 'America/New_York' AS created_at"
	for _, refused := range []string{mapping("created_at", "updated_at"), mapping("created_at::timestamptz", "updated_at"),
		mapping(line, "updated_at"), mapping(line, "greatest(updated_at, '2000-01-01Z'::timestamptz) AS updated_at")} {
		b.open(b.server.URL(), refused)
		if err := b.source.Check(ctx); err == nil || !strings.Contains(err.Error(), "X AT TIME ZONE 'America/New_York' AS ") {
			t.Errorf("%s: %v", refused, err)
		}
	}
	b.open(b.server.URL(), mapping(line, "updated_at AT TIME ZONE 'America/New_York' AS updated_at"))
	if err := b.source.Check(ctx); err != nil {
		t.Fatal(err)
	}
	index, err := b.source.MissingIndex(ctx, normalize.KindRun)
	if err != nil || !strings.HasPrefix(index, "CREATE INDEX CONCURRENTLY") {
		t.Fatalf("%q, %v", index, err)
	}
	b.do(index)
	if index, err = b.source.MissingIndex(ctx, normalize.KindRun); index != "" || err != nil {
		t.Errorf("with the index, missing: %q, %v", index, err)
	}
	status, _ := b.start(nil)
	b.untilEqual()
	b.overlapped(status, 1)
	b.do("UPDATE runs SET status = 'FAILED', updated_at = now() WHERE organization_id = 'acme'")
	b.untilEqual()
	// The first run was created at 20:00 there, which is 01:00 in UTC.
	if n := b.count("SELECT count() FROM runs FINAL WHERE organization_id = 'acme'" +
		" AND created_at = '2026-01-01 01:00:00'"); n != 1 {
		t.Errorf("%d runs at 01:00, want 1", n)
	}
}
