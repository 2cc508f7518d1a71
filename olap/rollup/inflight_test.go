package rollup_test

import (
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A row is stamped when its insert begins. What is refreshed meanwhile leaves it to a later refresh, which has it.
func TestRowsOfInsertsInFlightAreRefreshed(t *testing.T) {
	conn := refreshed(t, 1)
	ended := olaptest.SlowInsert(ctx, t, conn, "attributions", "2026-01-02", 4)
	const inserts = "SELECT toInt64(count()) FROM system.processes WHERE query_kind = 'Insert'"
	for n := 0; number(t, conn, inserts) == 1; n++ { // something is there to be refreshed each time
		load(t, conn, 2+n, "RUNNING")
		if _, err := rollup.New(conn, quiet, 0).Step(ctx); err != nil {
			t.Fatal(err)
		}
		all(t, conn)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	all(t, conn)
	sound(t, conn)
}
