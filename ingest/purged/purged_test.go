package purged_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A person stays out up to the purge, in one organization, until that is lifted; and ClickHouse computes the same hash
// as Go, of texts of all lengths.
func TestList(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	until := time.Date(2026, 1, 5, 10, 0, 0, 123e6, time.UTC)
	read := func() *purged.List {
		t.Helper()
		list, err := purged.Read(ctx, conn, nil)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if !read().Empty() {
		t.Error("the list of a new store has somebody")
	}
	if err := purged.Lift(ctx, conn, purged.Person{Organization: "acme", Identifier: "ada@x.example"}); !errors.Is(err,
		purged.ErrNotPurged) {
		t.Errorf("lifting nobody: %v", err)
	}
	identifier := ""
	for n := range 40 {
		identifier += string(rune('a' + n%26))
		if err := purged.Add(ctx, conn, purged.Person{Organization: "acme", Identifier: identifier}, until); err != nil {
			t.Fatal(err)
		}
		var found uint64
		err := conn.QueryRow(ctx, fmt.Sprintf("SELECT count() FROM (%s) WHERE has(%s, person)", schema.PurgedPeople,
			schema.PurgedPerson("'acme'", "'"+identifier+"'"))).Scan(&found)
		if err != nil || found != 1 {
			t.Errorf("ClickHouse finds %q %d times, %v", identifier, found, err)
		}
	}
	ada := purged.Person{Organization: "acme", Identifier: " ADA@x.example"}
	if err := purged.Add(ctx, conn, ada, until); err != nil {
		t.Fatal(err)
	}
	list := read()
	if same, err := purged.Read(ctx, conn, list); err != nil || same != list {
		t.Errorf("a list that did not change was read again: %v", err)
	}
	out := func(organization, identifier string, clock time.Time) bool {
		a := normalize.Attribution{OrganizationID: schema.OrganizationID(organization), UserIdentifier: identifier,
			OccurredAt: clock.UnixMilli()}
		r := normalize.Run{OrganizationID: a.OrganizationID, InitiatorIdentifier: &identifier, CreatedAt: a.OccurredAt}
		excluded := list.Excludes(&a) != nil
		if list.Anonymize(&r) != excluded || (r.InitiatorIdentifier == nil) != excluded {
			t.Errorf("%s %s: an attribution record and a run are judged otherwise", organization, identifier)
		}
		return excluded
	}
	if !out("acme", "ada@x.example", until) || out("acme", "ada@x.example", until.Add(time.Millisecond)) ||
		out("globex", "ada@x.example", until) || out("acme", "bob@x.example", until) {
		t.Error("not exactly ada's records up to the purge stay out")
	}
	if err := purged.Lift(ctx, conn, ada); err != nil {
		t.Fatal(err)
	}
	if list = read(); out("acme", "ada@x.example", until) || list.Empty() {
		t.Error("ada stays out after that was lifted, or nobody does")
	}
	if err := purged.Add(ctx, conn, ada, until); err != nil {
		t.Fatal(err)
	}
	if list = read(); !out("acme", "ada@x.example", until) {
		t.Error("ada does not stay out after the second purge")
	}
	// As by a machine whose clock was behind.
	if err := purged.Add(ctx, conn, ada, until.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if list = read(); !out("acme", "ada@x.example", until) {
		t.Error("an earlier purge moved a later one back")
	}
}

// A purge whose process was stopped so long that another one of the same person was made moves that one back no more,
// however often the person was purged before, nor does a lift.
func TestAStoppedPurgeDoesNotReplaceALaterOne(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	ada := purged.Person{Organization: "acme", Identifier: "ada@x.example"}
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	add := func(conn driver.Conn, until time.Time) {
		t.Helper()
		if err := purged.Add(ctx, conn, ada, until); err != nil {
			t.Fatal(err)
		}
	}
	stopped := func(meanwhile time.Time) driver.Conn { // before it stores the entry
		held := olaptest.Hold(conn)
		held.BeforeInsert(schema.TablePurgedPeople, func() { add(conn, meanwhile) })
		return held
	}
	add(conn, at)
	for before := range 2 {
		at = at.Add(2 * time.Hour)
		later := at.Add(time.Hour)
		if before > 0 {
			if err := purged.Lift(ctx, conn, ada); err != nil {
				t.Fatal(err)
			}
		}
		add(stopped(later), at)
		list, err := purged.Read(ctx, conn, nil)
		if err != nil {
			t.Fatal(err)
		}
		if until, ok := list.Until(ada); !ok || !until.Equal(later) {
			t.Errorf("after %d lifts: out until %v (%t), want %v", before, until, ok, later)
		}
	}
	if err := purged.Lift(ctx, stopped(at.Add(24*time.Hour)), ada); err != nil {
		t.Fatal(err)
	}
	if list, err := purged.Read(ctx, conn, nil); err != nil || list.Empty() {
		t.Errorf("a lift of before the last purge lifts that, %v", err)
	}
}
