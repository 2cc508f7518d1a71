package snapshot_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

// A statement that reads has all its snapshots: what is stored from then on is not in its answer, even of tables that it has not begun to read,
// because it still builds the other side of their join.
func TestStatementsTakeTheirSnapshotsBeforeTheyRead(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	insert := func() {
		t.Helper()
		if err := conn.Exec(ctx, "INSERT INTO rollup_runs (organization_id, sign) SELECT 'acme', 1"); err != nil {
			t.Fatal(err)
		}
	}
	insert()
	const given = 5
	const slow = " CROSS JOIN (SELECT sum(sleepEachRow(0.1)) FROM numbers(20)) AS s"
	for sql, times := range map[string]uint64{
		"SELECT count() FROM rollup_runs AS r" + slow:                                                           1,
		"SELECT count() FROM (SELECT sign FROM rollup_runs UNION ALL SELECT sign FROM rollup_runs) AS r" + slow: 2,
	} {
		id, counted := uuid.New(), make(chan uint64, 1)
		var before uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM rollup_runs").Scan(&before); err != nil {
			t.Fatal(err)
		}
		go func() {
			var count uint64
			if err := conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithQueryID(id.String())), sql).Scan(&count); err != nil {
				t.Error(err)
			}
			counted <- count
		}()
		for {
			reads, err := snapshot.Reads(ctx, conn, id, given)
			if err != nil {
				t.Fatal(err)
			}
			if reads {
				break
			}
			if len(counted) > 0 {
				t.Fatalf("%s: it was not seen to read", sql)
			}
			time.Sleep(time.Millisecond)
		}
		if reads, err := snapshot.Reads(ctx, conn, id, 1_000_000); err != nil || reads {
			t.Errorf("%s: it reads more than a million rows (%v)", sql, err)
		}
		insert()
		if count := <-counted; count != times*before {
			t.Errorf("%s: %d rows, want those that were stored before it read: %d", sql, count, times*before)
		}
	}
}
