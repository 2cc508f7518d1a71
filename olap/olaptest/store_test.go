package olaptest_test

import (
	"testing"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A store that is filled is as one that is migrated: it has the same tables, rows in the same ones, and its versions.
func TestFill(t *testing.T) {
	olaptest.OpenStore(t) // the first one: those after it are made like it
	migrated, filled := clickhousetest.Open(t), clickhousetest.Open(t)
	olaptest.Migrate(t, migrated, schema.Own)
	olaptest.Fill(t, filled)
	var want, got string
	const versions = "(SELECT arrayMap(v -> (v.2, v.3), arraySort(groupArray((sequence, version, dirty)))) FROM schema_"
	const describe = "SELECT toString((arraySort(groupArray((name, total_rows, replaceAll(create_table_query," +
		" concat(currentDatabase(), '.'), '')))), " + versions + "versions), " + versions + "migrations)))" +
		" FROM system.tables WHERE database = currentDatabase()"
	if err := migrated.Conn().QueryRow(t.Context(), describe).Scan(&want); err != nil {
		t.Fatal(err)
	}
	if err := filled.Conn().QueryRow(t.Context(), describe).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("a store that is filled has\n%s\nand one that is migrated\n%s", got, want)
	}
}
