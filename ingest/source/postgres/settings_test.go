package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// Settings of a database change nothing of what is read of it. Serializable transactions would have others fail, and
// are not possible at a standby.
func TestSettingsOfADatabase(t *testing.T) {
	url, conn := layout(t)
	do(t, conn, "INSERT INTO runs (organization_id, run_id, agent_id, status) VALUES ('acme', gen_random_uuid(), "+
		"gen_random_uuid(), 'RUNNING')")
	do(t, conn, "BEGIN; DELETE FROM agents; PREPARE TRANSACTION 'old'")
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "ROLLBACK PREPARED 'old'"); err != nil {
			t.Error(err)
		}
	})
	for _, setting := range []string{"default_transaction_isolation = serializable", "datestyle = German",
		"intervalstyle = iso_8601"} {
		do(t, conn, "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET "+setting+"'; END $$")
	}
	database := open(t, url, "initiator_name", "current_setting('transaction_isolation') AS initiator_name")
	if err := database.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := database.ExamineSettings(t.Context()); err != nil {
		t.Error(err)
	}
	read := ""
	err := database.All(t.Context(), normalize.KindRun, func(r *source.Record) error {
		read += string(r.Raw.Values[slices.Index(normalize.Fields(normalize.KindRun), "initiator_name")])
		return nil
	})
	if err != nil || read != "read committed" {
		t.Errorf("the isolation is %q, %v", read, err)
	}
}
