package move_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// Records that were stored while the old cell's clock was ahead by an hour are moved when both clocks have passed that,
// and until then writers don't wait: neither where nothing was begun, nor where a command was run again that had closed
// the old cell. The message says until when.
func TestRecordsThatAreStampedAhead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	a := b.conns["a"]
	stamps := olaptest.StampsOf(t, a)
	p, n := b.forget(), 0
	next := func() schema.OrganizationID {
		for n++; p.Of(schema.OrganizationID(fmt.Sprint("next-", n))) != "a"; n++ {
		}
		return schema.OrganizationID(fmt.Sprint("next-", n))
	}
	ahead := func(organization schema.OrganizationID) { // whether a is open or closed
		stamps.Shift(t, time.Hour)
		b.must(write.NewWriter(a, write.Retry{Logger: quiet}).Write(t.Context(), records(organization, 1, 1)))
		stamps.Shift(t, 0)
	}
	// refused checks how a move ended, and what a says then.
	refused := func(organization schema.OrganizationID, err error, state cells.State) {
		t.Helper()
		var last time.Time
		b.must(a.QueryRow(t.Context(), "SELECT max(last_stored_at) FROM insert_counters WHERE"+
			" source IN ('runs', 'attributions', 'agents') AND organization_id = $1", string(organization)).Scan(&last))
		if err == nil || !strings.Contains(err.Error(), "the last ones at "+last.Format(time.RFC3339)) {
			t.Errorf("%v, want that it can be moved after %s", err, last.Format(time.RFC3339))
		}
		told, err := cells.Read(t.Context(), a)
		b.must(err)
		if at := told.Place(cells.OrganizationSubject(organization)); at.Cell != "a" || at.State != state {
			t.Errorf("a says %+v, want %s", at, state)
		}
	}
	var organizations []schema.OrganizationID
	for _, last := range olaptest.Some(4, "", move.Copied, move.Closed, move.Agreed) {
		one := next()
		organizations = append(organizations, one)
		b.store(records(one, 0, 1))
		if last == "" {
			ahead(one)
		}
		err := b.move(cells.OrganizationSubject(one), "b", func(s move.Step) error {
			if s == last {
				ahead(one)
			}
			return nil
		})
		switch last {
		case "":
			refused(one, err, cells.Open)
			if n := b.count("b", one); n != 0 {
				t.Errorf("%d records in b", n)
			}
		case move.Copied:
			refused(one, err, cells.Moving)
		default:
			refused(one, err, cells.Closing)
			refused(one, b.move(cells.OrganizationSubject(one), "b", nil), cells.Moving)
		}
		b.store(records(one, 2, 1))
	}
	passed := map[string]driver.Conn{}
	for name, conn := range b.conns {
		held := olaptest.Hold(conn)
		held.Shift(2 * time.Hour)
		passed[name] = held
	}
	for _, one := range organizations {
		b.must(b.moveOver(passed, cells.OrganizationSubject(one), "b", nil))
		if here, left := b.count("b", one), b.count("a", one); here != 3 || left != 0 {
			t.Errorf("%d records in b and %d in a, want 3 and none", here, left)
		}
	}
}
