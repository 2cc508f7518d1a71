package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// MergedParts are names of parts that have nearly all runs created between two instants, and of each run one row: the
// largest of a month among those that were merged. None where these parts have all runs, or none of them. All versions
// of a run are in one month, and a merge leaves one row of it.
func MergedParts(ctx context.Context, conn driver.Conn, from, until time.Time) (names []string, err error) {
	var rest int64
	const month = "200601" // toYYYYMM, by which runs are partitioned
	err = conn.QueryRow(OneThread(ctx), "SELECT groupArrayIf(name, merged > 0), sum(rest) FROM ("+
		"SELECT argMax(name, if(level > 0, rows, 0)) AS name, max(if(level > 0, rows, 0)) AS merged, sum(rows) - merged AS "+
		"rest FROM system.parts WHERE active AND database = currentDatabase() AND table = {table:String} AND partition_id "+
		">= {from:String} AND partition_id <= {until:String} GROUP BY partition_id)",
		clickhouse.Named("table", schema.TableRuns), clickhouse.Named("from", from.UTC().Format(month)),
		clickhouse.Named("until", until.UTC().Format(month))).Scan(&names, &rest)
	if err != nil {
		return nil, failure.Of("read parts", err)
	}
	if rest == 0 {
		return nil, nil
	}
	return names, nil
}
