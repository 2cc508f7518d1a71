package olap_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

// An insert of a refresh is distinguished from inserts of records, for which a boundary waits.
func TestRefreshInFlight(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn := olaptest.OpenStore(t).Conn()
	if inserts, err := snapshot.ReadInserts(ctx, conn); inserts.Refreshing || err != nil {
		t.Fatalf("refreshing without a refresher: %v, %v", inserts, err)
	}
	id := snapshot.RefreshQueryPrefix + "test"
	began := time.Now().Add(-time.Second)
	go conn.Exec(clickhouse.Context(ctx, clickhouse.WithQueryID(id)),
		"INSERT INTO rollup_runs (organization_id, created_at) SELECT 'acme', now64(3) FROM numbers(100)"+
			" WHERE sleepEachRow(0.5) = 0 SETTINGS max_block_size = 1")
	for refreshing := false; !refreshing; {
		inserts, err := snapshot.ReadInserts(ctx, conn)
		if err != nil || inserts.Oldest.Before(began) {
			t.Fatalf("inserts since %v: %v", inserts.Oldest, err)
		}
		refreshing = inserts.Refreshing
	}
	if err := conn.Exec(ctx, "KILL QUERY WHERE query_id = '"+id+"'"); err != nil {
		t.Error(err)
	}
}
