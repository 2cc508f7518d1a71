package olaptest

import (
	"context"
	"log/slog"
	"testing"
	"time"

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

// EngineIn is an embedded engine with the tables in a data directory, which is removed when it ends, with t at the
// latest.
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

// Until waits until something holds, a minute at most.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}
