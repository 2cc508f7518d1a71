package olaptest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	server "github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/schema"
)

// OwnEngine is an embedded engine with the tables that no other test uses, for one that breaks it, and its data
// directory. Both end with t.
func OwnEngine(t testing.TB) (engine *server.Server, dataDir string) {
	t.Helper()
	dir, err := memory.NewDir("runlens-engine-")
	if err != nil {
		t.Fatal(err)
	}
	return EngineIn(t, dir), dir
}

// EngineIn is an embedded engine with the tables in a data directory, which may have a store already, and is removed
// when the engine ends, with t at the latest.
func EngineIn(t testing.TB, dataDir string) *server.Server {
	t.Helper()
	engine, err := server.Open(context.Background(), server.Config{
		DataDir: dataDir, Ephemeral: true, EngineLib: clickhousetest.Library(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	Migrate(t, engine, schema.Own)
	return engine
}

// SlowInsert begins an insert of acme into a table, of rows of a day, half a second for each, and returns when the
// store lists it. They are stamped when it begins.
func SlowInsert(
	ctx context.Context, t testing.TB, conn driver.Conn, table, day string, rows int,
) (ended chan error) {
	t.Helper()
	at := "toDateTime64('" + day + " 12:00:00', 3, 'UTC')"
	into := map[string]string{
		schema.TableRuns: "runs (organization_id, run_id, created_at, agent_id, updated_at, first_stored_at)" +
			" SELECT 'acme', generateUUIDv4(), " + at + ", generateUUIDv4(), now64(3), now64(3)",
		schema.TableAttributions: "attributions (organization_id, attribution_id, occurred_at, first_stored_at)" +
			" SELECT 'acme', generateUUIDv4(), " + at + ", now64(3)",
		"rollup_runs": "rollup_runs (organization_id, created_at, sign) SELECT 'acme', " + at + ", 1",
	}[table]
	ended = make(chan error, 1)
	go func() {
		ended <- conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s FROM numbers(%d) WHERE sleepEachRow(0.5) = 0"+
			" SETTINGS max_block_size = 1", into, rows))
	}()
	Until(t, "the insert runs", func() bool {
		var running uint64
		err := conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_kind = 'Insert'").Scan(&running)
		return err == nil && running > 0
	})
	return ended
}

// Until waits until something holds, a minute at most.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}
