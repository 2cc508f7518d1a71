package olaptest

import (
	"context"
	"sync"
	"testing"

	server "github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/schema"
)

// OpenStore returns a migrated, empty store.
func OpenStore(t testing.TB) *server.Server {
	t.Helper()
	store := clickhousetest.Open(t)
	Fill(t, store)
	return store
}

// Migrate has a binary with a series of migrations apply them.
func Migrate(t testing.TB, store *server.Server, series schema.Series) {
	t.Helper()
	db, err := store.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := series.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
}

// tables are the statements that make at once what the migrations make. The first store of a process that is filled
// says which those are.
var tables struct {
	sync.Mutex
	statements []string
}

// listTables lists the statements: views come after the tables that they read, and rows last.
var listTables = "SELECT arrayConcat((SELECT arrayMap(t -> replaceAll(t.2, concat(currentDatabase(), '.'), '')," +
	" arraySort(groupArray((engine LIKE '%View', create_table_query)))) FROM system.tables" +
	" WHERE database = currentDatabase()), [" + versionsIn("migrations") + ", " + versionsIn("versions") + "])"

func versionsIn(table string) string {
	return "assumeNotNull((SELECT concat('INSERT INTO schema_" + table + " VALUES '," +
		" arrayStringConcat(groupArray(toString(tuple(*))), ', ')) FROM schema_" + table + "))"
}

// Fill makes an empty store a migrated one. All embedded engines but the first of the process get the tables as the
// migrations left them there, which takes a third of the processor time.
func Fill(t testing.TB, store *server.Server) {
	t.Helper()
	if !store.Embedded() {
		Migrate(t, store, schema.Own)
		return
	}
	ctx := context.Background()
	tables.Lock()
	statements := tables.statements
	if statements == nil {
		defer tables.Unlock()
		Migrate(t, store, schema.Own)
		if err := store.Conn().QueryRow(ctx, listTables).Scan(&tables.statements); err != nil {
			t.Fatal(err)
		}
		return
	}
	tables.Unlock()
	for _, statement := range statements {
		if err := store.Conn().Exec(ctx, statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
}
