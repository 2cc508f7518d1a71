package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/worker"
)

// A holdingConn purges somebody when an insert into runs and into attributions is about to begin, as if the worker was
// paused with the page that it has read.
type holdingConn struct {
	driver.Conn
	purge func(table string)
	once  map[string]*sync.Once
}

func (c *holdingConn) PrepareBatch(ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	for table, once := range c.once {
		if strings.HasPrefix(query, "INSERT INTO "+table+" ") {
			once.Do(func() { c.purge(table) })
		}
	}
	return c.Conn.PrepareBatch(ctx, query, options...)
}

// A person who is purged while a worker holds a page stays out, for polling and for the full comparison, which finds
// nothing to copy again.
func TestPurgedWhileAPageIsHeld(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 60)
	holding := &holdingConn{Conn: b.store, once: map[string]*sync.Once{"runs": {}, "attributions": {}},
		purge: func(table string) {
			who := map[string]string{"runs": "person1@example.com", "attributions": "+15550101"}[table]
			if err := purge.Person("acme", who).Run(context.Background(), b.store, func(purge.Step) {}); err != nil {
				t.Error(err)
			}
		}}
	status, stop := b.start(func(o *worker.Options) { o.Conn, o.ReconcileEvery = holding, time.Hour })
	b.until("the first comparison has ended", func() bool { return status.Report().Reconcile != nil })
	stop()
	for _, left := range []string{
		"SELECT count() FROM attributions WHERE user_identifier = '+15550101'",
		"SELECT count() FROM runs WHERE tupleElement(record, 'initiator_identifier') = 'person1@example.com'",
	} {
		if n := b.count(left); n != 0 {
			t.Errorf("%d rows are left: %s", n, left)
		}
	}
	if d := b.differences(); len(d) != 0 {
		t.Errorf("%d groups differ", len(d))
	}
	report := status.Report()
	if r := report.Reconcile; r.Differed != 0 || r.Repaired != 0 || r.Replaced != 0 {
		t.Errorf("the comparison found %+v", r)
	}
	runs, records := report.Kinds[normalize.KindRun].Purged, report.Kinds[normalize.KindAttribution].Purged
	if runs != 12 || records != 7 || len(b.rejected) != 0 {
		t.Errorf("%d runs and %d records of purged people, %d rejects; want 12, 7 and 0", runs, records, len(b.rejected))
	}
}
