package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/schema"
)

// What a rollup table computes from its columns is what its description says: sums, keys and spans of time.
func TestRollupColumnsAreThoseOfTheTables(t *testing.T) {
	_, db := migrated(t)
	for table, insert := range map[string]string{
		// Every status, kind and initiator type, with and without an initiator and a name, before 1970 and after.
		"rollup_runs": "(organization_id, created_at, run_id, state, agent_id, initiator, initiator_name, sign)" +
			" SELECT 'acme', toDateTime64('1969-12-30 23:59:59.999', 3, 'UTC') + toIntervalSecond(number * 1234)," +
			" generateUUIDv4(), number, generateUUIDv4(), if(number % 3 = 0, 0, cityHash64(number))," +
			" if(number % 2 = 0, NULL, 'Ada'), if(number % 5 = 0, -1, 1) FROM numbers(2048)",
		"rollup_attributions": "(organization_id, occurred_at, attribution_id, agent_id, activity_type, sign)" +
			" SELECT 'acme', toDateTime64('1969-12-30 23:59:59.999', 3, 'UTC') + toIntervalSecond(number * 1234)," +
			" generateUUIDv4(), generateUUIDv4(), 1 + number % 3, if(number % 5 = 0, -1, 1) FROM numbers(300)",
	} {
		execute(t, db, "INSERT INTO "+table+" "+insert+" SETTINGS max_partitions_per_insert_block = 0")
	}
	for _, table := range schema.RollupTables {
		columns := map[string]string{}
		maps.Copy(columns, table.Sums)
		for _, key := range table.Keys {
			columns[key.Name] = key.SQL
		}
		for _, p := range table.Projections {
			columns[p.Time] = fmt.Sprintf("floor(toUnixTimestamp64Milli(%s) / %d)", table.Clock, p.SpanMillis)
		}
		for _, name := range slices.Sorted(maps.Keys(columns)) {
			sql := columns[name]
			for _, c := range table.Columns {
				if c.InRollup != "" { // a column that is sent and not stored
					sql = strings.ReplaceAll(sql, c.Name+" ", c.InRollup+" ")
					sql = strings.ReplaceAll(sql, c.Name+",", c.InRollup+",")
				}
			}
			var rows, differing int64
			err := db.QueryRow("SELECT toInt64(count()), toInt64(countIf("+name+" != "+sql+")) FROM "+table.Table).
				Scan(&rows, &differing)
			if err != nil || rows == 0 || differing != 0 {
				t.Errorf("%s.%s: %d of %d rows are not %s (%v)", table.Table, name, differing, rows, sql, err)
			}
		}
	}
}
