package olap_test

import (
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// During a refresh batch the delta cannot be read into the cache. Queries do not wait for the end of the batch.
func TestQueriesDuringBatches(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engine := engineWith(conn, asLarge)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 1, "RUNNING")}})
	refreshed(t, rollup.New(conn, quiet, 0))
	begin := func(kind string) {
		t.Helper()
		execute(t, conn, "INSERT INTO rollup_log (kind, latest) SELECT $1, (tupleElement(latest, 1) + 1, "+
			"tupleElement(latest, 2), now64(3, 'UTC')) FROM rollup_log FINAL WHERE kind = 'commit'", kind)
	}
	expect := func(when string, want float64, cached int) {
		t.Helper()
		if got := ask(t, engine, "acme", totals).Rows[0][0]; got != want || engine.CachedDelta("acme", "runs") != cached {
			t.Errorf("%s: %v runs, want %v; %d rows of the delta are cached, want %d", when, got, want,
				engine.CachedDelta("acme", "runs"), cached)
		}
	}
	// The first reading is not cached: inserts of an older server may not be counted. An insert may seem to be in flight.
	untilCached := func(rows int) {
		t.Helper()
		olaptest.Until(t, "the delta is cached", func() bool {
			ask(t, engine, "acme", totals)
			return engine.CachedDelta("acme", "runs") == rows
		})
	}
	untilCached(0)
	expect("before", 1, 0)

	begin("begin")
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(2, 2, "RUNNING")}})
	expect("during the batch", 2, 0)
	begin("commit")
	untilCached(1)
	expect("after the batch", 2, 1)
}
