package rollup_test

import (
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A row is stamped when its insert begins. What is refreshed meanwhile leaves it to a later refresh, which has it.
func TestRowsOfInsertsInFlightAreRefreshed(t *testing.T) {
	conn := refreshed(t, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- conn.Exec(ctx, `INSERT INTO attributions (organization_id, attribution_id, occurred_at, first_stored_at)
			SELECT 'acme', generateUUIDv4(), toDateTime64('2026-01-02 12:00:00', 3, 'UTC'), now64(3)
			FROM numbers(4) WHERE sleepEachRow(0.5) = 0`)
	}()
	const inserts = "SELECT toInt64(count()) FROM system.processes WHERE query_kind = 'Insert'"
	olaptest.Until(t, "the insert runs", func() bool { return number(t, conn, inserts) == 1 })
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
	if found := check(t, conn); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
