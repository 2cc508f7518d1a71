package schema_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/schema"
)

// Every table is durable but those of which each row may be lost; one that is not is found.
func TestTablesAreDurable(t *testing.T) {
	_, db := migrated(t)
	want := []string{schema.TableAPIKeyUses, schema.TableInsertCounters, schema.TableUsageLog}
	durable := strings.Split(schema.DurableSettings, ", ")
	if got := tablesWithout(t, db, durable...); !slices.Equal(got, want) {
		t.Errorf("the tables %v are not durable, want %v alone", got, want)
	}
	for _, without := range durable {
		name, _, _ := strings.Cut(without, " ")
		execute(t, db, "ALTER TABLE runs MODIFY SETTING "+name+" = 0")
		if !slices.Contains(tablesWithout(t, db, durable...), "runs") {
			t.Errorf("runs without %s is taken for durable", name)
		}
		execute(t, db, "ALTER TABLE runs MODIFY SETTING "+without)
	}
}

// No merge of what answers read collects statistics, and so no part is left out of an answer by them.
func TestTablesHaveNoStatistics(t *testing.T) {
	_, db := migrated(t)
	with := tablesWithout(t, db, "auto_statistics_types = ''")
	for _, name := range []string{schema.TableAgents, schema.TableRuns, schema.TableAttributions, "rollup_runs",
		"rollup_attributions", schema.TableInitiatorKeys} {
		if slices.Contains(with, name) {
			t.Errorf("%s has statistics", name)
		}
	}
	execute(t, db, "INSERT INTO runs (organization_id, created_at) VALUES ('acme', '2026-01-01')",
		"OPTIMIZE TABLE runs FINAL")
	var columns, collected uint64
	if err := db.QueryRow("SELECT count(), countIf(notEmpty(statistics)) FROM system.parts_columns"+
		" WHERE database = currentDatabase() AND table = 'runs' AND active").Scan(&columns, &collected); err != nil {
		t.Fatal(err)
	}
	if columns == 0 || collected > 0 {
		t.Errorf("%d of %d columns have statistics, want none", collected, columns)
	}
}

// tablesWithout are those that lack one of the settings, in order.
func tablesWithout(t *testing.T, db *sql.DB, settings ...string) (names []string) {
	t.Helper()
	rows, err := db.Query("SELECT name, engine_full FROM system.tables" +
		" WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, engine string
		if err := rows.Scan(&name, &engine); err != nil {
			t.Fatal(err)
		}
		_, has, _ := strings.Cut(engine, "SETTINGS ")
		for _, setting := range settings {
			if !slices.Contains(strings.Split(has, ", "), setting) {
				names = append(names, name)
				break
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}
