package push_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
)

// A body of many months is stored by several inserts, and what somebody else pushes meanwhile by the next of them. Who
// is purged in between is rejected in the line of the record, whichever insert has it.
func TestABodyOfManyMonths(t *testing.T) {
	conn := &heldConn{Conn: olaptest.OpenStore(t).Conn()}
	lane := laneOf(conn, nil)
	const months = 120 // of runs and of attribution records: two inserts and a part of a third one
	var text strings.Builder
	for n := range months {
		at, who := fmt.Sprintf("%d-%02d-05T09:30:00Z", 2026-n/12, 1+n%12), "bob"
		if n == months-1 {
			who = "ada"
		}
		fmt.Fprintf(&text, `{"record":"run","organization_id":"acme","run_id":"%[1]s","agent_id":"%[1]s",`+
			`"status":"COMPLETED","created_at":"%[2]s","updated_at":"%[2]s"}`+"\n", olaptest.ShortID(n+1), at)
		text.WriteString(strings.Replace(strings.Replace(lines("acme", who), "2026-01-05T09:30:00Z", at, 1),
			olaptest.ShortID(len(who)+int(who[0])).String(), olaptest.ShortID(n+1).String(), 1))
	}
	many, other := read(t, "acme", text.String()), read(t, "globex", lines("globex", "eve"))
	otherStored := make(chan struct{})
	var pushing sync.WaitGroup
	conn.do = func() { // the first insert
		if err := purge.Person("acme", "ada@example.com").Run(t.Context(), conn.Conn, func(purge.Step) {}); err != nil {
			t.Error(err)
		}
		before := lane.Waiting()
		pushing.Go(func() {
			if err := lane.Store(t.Context(), other, func() {}); err != nil {
				t.Error(err)
			}
			close(otherStored)
		})
		until(func() bool { return lane.Waiting() != before })
	}
	if err := lane.Store(t.Context(), many, func() {}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-otherStored:
	default:
		t.Error("another organization has waited until all of the body was stored")
	}
	pushing.Wait()
	lane.Close()
	var runs, attributions uint64
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM runs WHERE organization_id = 'acme'), "+
		"(SELECT count() FROM attributions WHERE organization_id = 'acme')").Scan(&runs, &attributions); err != nil {
		t.Fatal(err)
	}
	if runs != months || attributions != months-1 || stored(t, conn, "globex") != "eve" {
		t.Errorf("%d runs and %d attribution records are stored", runs, attributions)
	}
	if many.Stored() != 2*months-1 || len(many.Rejects) != 1 || many.Rejects[0].Line != 2*months {
		t.Errorf("%d of %d stored, rejected: %v", many.Stored(), many.Lines, many.Rejects)
	}
	if inserts := conn.inserts.Load(); inserts != 4 {
		t.Errorf("%d inserts into a table, want 4: the second one has both", inserts)
	}
}
