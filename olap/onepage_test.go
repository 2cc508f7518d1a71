package olap_test

import (
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
)

// A question that had one page before takes the clock of its statement for its asOf. Where it has more pages by now, an
// insert that is in flight is after it.
func TestAPageThatWasNotExpectedIsConfirmed(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engine := newEngine(conn)
	q := byDay(2)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 3, "RUNNING"), runOn(2, 4, "RUNNING")}})
	if first := ask(t, engine, "acme", q); first.Cursor != nil || len(first.Rows) != 2 {
		t.Fatalf("%+v, want one page", first)
	}
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(3, 5, "RUNNING")}})
	inserted := olaptest.SlowInsert(t.Context(), t, conn, "runs", "2026-01-06", 4)
	first := ask(t, engine, "acme", q)
	before := storedUntil(t, conn, first.AsOf)
	if err := <-inserted; err != nil {
		t.Fatal(err)
	}
	if after := storedUntil(t, conn, first.AsOf); first.Cursor == nil || before != after {
		t.Errorf("%d runs were stored until asOf when the page was answered, and %d are now", before, after)
	}
}
