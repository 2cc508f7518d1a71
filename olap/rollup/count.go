package rollup

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// Count counts the rows of organizations that insert_counters lacks, as those that a backup brought. A count that is
// too small costs time: queries of a large organization are then planned as those of a small one. Rows may be stamped
// ahead of the store's clock, as after it was set back: then they were stored at their stamp, as far as counts say.
func Count(ctx context.Context, conn driver.Conn) error {
	for _, table := range []string{schema.TableAgents, schema.TableRuns, schema.TableAttributions} {
		stamp := "toDateTime64(0, 3, 'UTC')"
		if t := schema.RollupOf(table); t != nil {
			stamp = t.StoredAt
		}
		stored := sql.Select{
			Columns: []string{"toString(organization_id) AS organization", "toInt64(count()) AS stored",
				"max(" + stamp + ") AS newest"},
			From: refreshed(table), Group: []string{"organization"},
		}
		counted := sql.Select{
			Columns: []string{"organization_id AS organization", "toInt64(sum(rows)) AS counted"},
			From:    refreshed(schema.TableInsertCounters), Where: []string{"source = '" + table + "'"},
			Group: []string{"organization"},
		}
		missing := sql.Select{
			Columns: []string{"'" + table + "'", "stored.organization", "toUInt64(stored - counted)",
				"greatest(now64(3, 'UTC'), newest)"},
			From: sql.Query(stored).As("stored"),
			Joins: []sql.Join{{Kind: "LEFT", From: sql.Query(counted).As("counted"),
				On: "ON stored.organization = counted.organization"}},
			Where: []string{"stored > counted"},
		}
		insert := "INSERT INTO " + schema.TableInsertCounters + " (source, organization_id, rows, last_stored_at)\n" +
			missing.String()
		if err := conn.Exec(inserting(ctx, nil), insert); err != nil {
			return fmt.Errorf("rollup: count stored rows: %w", err)
		}
	}
	return nil
}
