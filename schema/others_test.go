package schema_test

import (
	"errors"
	"testing"

	"github.com/runlens/runlens/schema"
)

// A database in which another program has tables with names of ours is refused, and left as it is: their rows would be
// taken for the store's, and removed by a purge or Down. Other tables may stay.
func TestUpRefusesTablesOfAnotherProgram(t *testing.T) {
	_, db := open(t)
	execute(t, db, "CREATE TABLE orders (id UInt64) ENGINE = MergeTree ORDER BY id",
		"CREATE TABLE schema_migrations (version Int64, dirty UInt8, sequence UInt64) ENGINE = MergeTree ORDER BY version",
		"INSERT INTO schema_migrations VALUES (120, 0, 1)", // as its golang-migrate does
		"CREATE TABLE audit_log (id UInt64, organization_id String) ENGINE = MergeTree ORDER BY id")
	if err := schema.Own.Up(t.Context(), db); !errors.Is(err, schema.ErrOtherTables) {
		t.Errorf("up: got %v, want ErrOtherTables", err)
	}
	if err := schema.Own.Down(t.Context(), db, 100); err != nil {
		t.Error(err)
	}
	if state, err := schema.Own.Status(t.Context(), db); err != nil || state.Others != "audit_log, schema_migrations" {
		t.Errorf("the state is %+v, %v", state, err)
	}
	execute(t, db, "DROP TABLE audit_log", "DROP TABLE schema_migrations",
		// Tables of the store that were restored before the migrations are its own.
		"CREATE TABLE secrets (name LowCardinality(String), value String, created_at DateTime64(9, 'UTC'))"+
			" ENGINE = MergeTree ORDER BY (name, created_at, value)")
	if err := schema.Own.Up(t.Context(), db); err != nil {
		t.Error(err)
	}
	if state, err := schema.Own.Status(t.Context(), db); err != nil || !state.Current() || state.Others != "" {
		t.Errorf("the state is %+v, %v", state, err)
	}
}
