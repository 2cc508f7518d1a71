package rollup_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// A key that represents two names of a person is marked when the second of them is refreshed, and a check finds an
// absent mark.
func TestSharedKeysAreMarked(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	at, ada := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com"
	const marked = "SELECT toInt64(count()) FROM shared_initiator_keys FINAL"
	for i, name := range olaptest.SharingNames {
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{{Organization: "acme", ID: olaptest.ID(i), CreatedAt: at,
			Kind: "agent", Status: "RUNNING", Identifier: &ada, Name: &name, UpdatedAt: at}}})
		all(t, conn)
		if got := number(t, conn, marked); got != int64(i) {
			t.Errorf("%d keys are marked after %d names", got, i+1)
		}
	}
	sound(t, conn)
	execute(t, conn, "TRUNCATE TABLE shared_initiator_keys")
	if found := check(t, conn); len(found) != 1 || found[0].Table != "shared_initiator_keys" || found[0].Records != 1 {
		t.Errorf("differences: %+v, want that a mark is missing", found)
	}
}
