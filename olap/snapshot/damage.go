package snapshot

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// damagedParts counts the parts that a start of ClickHouse put aside because they were damaged. Tables that need not
// survive a loss of power may have such parts after one.
const damagedParts = "SELECT table, count() FROM system.detached_parts" +
	" WHERE database = currentDatabase() AND reason IN ('broken', 'broken-on-start', 'covered-by-broken')" +
	" AND table NOT IN ('" + schema.TableInsertCounters + "', '" + schema.TableAPIKeyUses + "', '" +
	schema.TableUsageLog + "') GROUP BY table"

// DamagedParts returns how many parts of which tables ClickHouse found damaged and put aside, and did not get back.
func DamagedParts(ctx context.Context, conn driver.Conn) (map[string]uint64, error) {
	rows, err := conn.Query(OneThread(ctx), damagedParts)
	if err != nil {
		return nil, failure.Of("read damaged parts", err)
	}
	defer rows.Close()
	parts := map[string]uint64{}
	for rows.Next() {
		var table string
		var n uint64
		if err := rows.Scan(&table, &n); err != nil {
			return nil, failure.Of("read damaged parts", err)
		}
		parts[table] = n
	}
	if err := rows.Err(); err != nil {
		return nil, failure.Of("read damaged parts", err)
	}
	return parts, nil
}
