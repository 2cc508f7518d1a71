package olap_test

import (
	"reflect"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Where texts of initiator keys are lost, as with a part that ClickHouse found damaged, a question about people is
// answered from the base tables before a checker has found it.
func TestTextsThatAreLost(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{
		startedBy(1, "ada@example.com", "Ada"), startedBy(2, "bob@example.org", "Bob"),
		startedBy(3, "bob@example.org", "Bob"),
	}})
	refreshed(t, rollup.New(conn, quiet, 0))
	q := by(totals, "user_identifier")
	want := [][]any{{"ada@example.com", "Ada", 1.}, {"bob@example.org", "Bob", 2.}}
	for _, lost := range []bool{false, true} {
		if lost {
			execute(t, conn, "TRUNCATE TABLE initiator_keys")
		}
		for name, engine := range trusting(conn) {
			got, by, err := answered(engine, acme, q.Body())
			if err != nil || !reflect.DeepEqual(got.Rows, want) {
				t.Errorf("%s, lost %v: %v, %v by %+v", name, lost, got.Rows, err, by)
			}
		}
	}
}
