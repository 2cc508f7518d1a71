package schema_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/schema"
)

// Every table is durable but those of which each row may be lost; one that is not is found.
func TestTablesAreDurable(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	if err := schema.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	want := []string{schema.TableAPIKeyUses, schema.TableInsertCounters, schema.TableUsageLog}
	if got := volatileTables(t, db); !slices.Equal(got, want) {
		t.Errorf("the tables %v are not durable, want %v alone", got, want)
	}
	for _, without := range strings.Split(schema.DurableSettings, ", ") {
		name, _, _ := strings.Cut(without, " ")
		if _, err := db.Exec("ALTER TABLE runs MODIFY SETTING " + name + " = 0"); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(volatileTables(t, db), "runs") {
			t.Errorf("runs without %s is taken for durable", name)
		}
		if _, err := db.Exec("ALTER TABLE runs MODIFY SETTING " + without); err != nil {
			t.Fatal(err)
		}
	}
}

// volatileTables are those that lack one of the durable settings, in order.
func volatileTables(t *testing.T, db *sql.DB) (names []string) {
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
		_, settings, _ := strings.Cut(engine, "SETTINGS ")
		for _, setting := range strings.Split(schema.DurableSettings, ", ") {
			if !slices.Contains(strings.Split(settings, ", "), setting) {
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
