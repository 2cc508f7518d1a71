package snapshot_test

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

// Inserts of runs and of attribution records are in flight until they end. Those of a refresh are told from them.
func TestInsertsInFlight(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for table, refresh := range map[string]bool{"runs": false, "attributions": false, "rollup_runs": true} {
		ctx := t.Context()
		if refresh {
			ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()))
		}
		ended := olaptest.SlowInsert(ctx, t, conn, table, "2026-01-02", 4)
		seen, refreshing := false, false
		for running := true; running; {
			in, err := snapshot.ReadInserts(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			refreshing = refreshing || in.Refreshing
			seen = seen || in.Now.Sub(in.Oldest) > 100*time.Millisecond
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
		}
		if seen == refresh || refreshing != refresh {
			t.Errorf("%s: seen in flight: %t, refreshing: %t", table, seen, refreshing)
		}
	}
}
