package snapshot_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
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

// However many wait for an insert in flight: they share one reading at a time, and read the less often the longer they
// wait.
func TestThoseWhoWaitForAnInsertShareReadings(t *testing.T) {
	readings := &readings{Conn: olaptest.OpenStore(t).Conn()}
	for _, waiting := range []int{1, 8} {
		readings.n.Store(0)
		ended := olaptest.SlowInsert(t.Context(), t, readings.Conn, "runs", "2026-01-02", 5)
		view := snapshot.NewView(readings)
		var waited sync.WaitGroup
		for i := range waiting {
			waited.Go(func() {
				if _, err := view.Await(t.Context(), schema.OrganizationID(fmt.Sprint("org-", i))); err != nil {
					t.Error(err)
				}
			})
		}
		waited.Wait()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		// Two seconds are 2 ms for ten readings, and then a tenth more for each.
		if n := readings.n.Load(); n < 2 || n > int64(70*waiting) {
			t.Errorf("%d read the inserts in flight %d times", waiting, n)
		}
	}
	if most := readings.most.Load(); most != 1 {
		t.Errorf("they were read %d times at once", most)
	}
}

// readings counts how often the inserts in flight are read, and how often at most at once.
type readings struct {
	driver.Conn
	n, now, most atomic.Int64
}

func (r *readings) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if strings.Contains(text, "system.processes") {
		r.n.Add(1)
		now := r.now.Add(1)
		defer r.now.Add(-1)
		for most := r.most.Load(); now > most && !r.most.CompareAndSwap(most, now); most = r.most.Load() {
		}
	}
	return r.Conn.Query(ctx, text, args...)
}
