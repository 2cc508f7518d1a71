package snapshot_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const acme schema.OrganizationID = "acme"

func store(t *testing.T, conn driver.Conn, organization string) {
	t.Helper()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{{Organization: organization, ID: olaptest.ShortID(1),
		AgentID: olaptest.ShortID(1), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "RUNNING"}}})
}

// read reads what is being stored when the store's clock has moved on.
func read(t *testing.T, conn driver.Conn, v *snapshot.View) {
	t.Helper()
	began, err := snapshot.Now(t.Context(), conn)
	for now := began; err == nil && now.Sub(began) < 5*time.Millisecond; {
		now, err = snapshot.Now(t.Context(), conn)
	}
	if err == nil {
		err = v.Follow(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func idle(t *testing.T, v *snapshot.View, of schema.OrganizationID) snapshot.Derived {
	t.Helper()
	boundary, ok := v.Derive(of)
	if !ok {
		t.Fatalf("%v are not idle", of)
	}
	return boundary
}

// slowInsert begins an insert of two seconds and returns when the store lists it.
func slowInsert(t *testing.T, conn driver.Conn) (ended chan error) {
	t.Helper()
	return olaptest.SlowInsert(context.Background(), t, conn, schema.TableRuns, "2026-01-02", 4)
}

// A boundary that was waited for is after every insert that began before, or those have ended.
func TestAwait(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	store(t, conn, "acme")
	ended := slowInsert(t, conn)
	if awaited(t, conn, snapshot.NewView(conn), func() chan error { return ended }) == 0 {
		t.Error("no row was stored until the boundary")
	}
}

// So it is where, between the two statements of its snapshot, one insert begins and another one ends: the newest row is
// then of after the clock that was read, although that was not set back.
func TestAwaitWhileRowsAreStored(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	held := olaptest.Hold(conn)
	v := snapshot.NewView(held)
	var ended chan error
	held.Restart()
	held.Before(2, func() {
		ended = slowInsert(t, conn)
		store(t, conn, "acme")
	})
	awaited(t, conn, v, func() chan error { return ended })
}

// awaited waits for a boundary, and expects that an insert that is in flight meanwhile adds no rows until then. It
// returns how many there are.
func awaited(t *testing.T, conn driver.Conn, v *snapshot.View, inFlight func() chan error) (before uint64) {
	t.Helper()
	asOf, err := v.Await(t.Context(), acme)
	if err != nil {
		t.Fatal(err)
	}
	visible := func() (n uint64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM runs WHERE first_stored_at <= "+
			"fromUnixTimestamp64Milli($1, 'UTC')", asOf.UnixMilli()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before = visible()
	if err := <-inFlight(); err != nil {
		t.Fatal(err)
	}
	if after := visible(); after != before {
		t.Errorf("%d rows were stored until %v, and %d are after an insert that was in flight", before, asOf, after)
	}
	return before
}

// A boundary is confirmed if nothing was stored of the records since the reading before it, and is not otherwise.
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		name      string
		stored    bool                          // a row, before the reading
		after     func(*testing.T, driver.Conn) // Idle
		inFlight  bool                          // an insert, when the reading is made, which ends after Idle
		setBack   time.Duration                 // the store's clock, after the reading
		confirmed bool
	}{
		{name: "nothing was ever stored", confirmed: true},
		{name: "the first row", after: func(t *testing.T, conn driver.Conn) { store(t, conn, "acme") }},
		{name: "no other row", stored: true, confirmed: true},
		{name: "another row", stored: true, after: func(t *testing.T, conn driver.Conn) { store(t, conn, "acme") }},
		{name: "of others", stored: true, after: func(t *testing.T, conn driver.Conn) { store(t, conn, "others") },
			confirmed: true},
		{name: "an insert failed", stored: true, after: func(t *testing.T, conn driver.Conn) {
			if conn.Exec(t.Context(), "INSERT INTO runs (organization_id) SELECT toString(throwIf(1))") == nil {
				t.Fatal("it did not fail")
			}
		}},
		{name: "in flight", stored: true, inFlight: true},
		{name: "clock set back", stored: true, setBack: 1500 * time.Millisecond},
		{name: "clock set back a little", stored: true, setBack: 500 * time.Millisecond, confirmed: true},
	} {
		for _, way := range []string{"derived", "fresh", "own clock"} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				conn := olaptest.OpenStore(t).Conn()
				v := snapshot.NewView(conn)
				v.SetMargin(0)
				if c.stored {
					store(t, conn, "acme")
				}
				var ended chan error
				if c.inFlight {
					ended = slowInsert(t, conn)
				}
				read(t, conn, v)
				v.SetBack(c.setBack)
				boundary := idle(t, v, acme)
				for way == "derived" && boundary.Fresh() {
					boundary = idle(t, v, acme)
				}
				if c.after != nil {
					c.after(t, conn)
				}
				if c.inFlight {
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
				}
				if way == "own clock" {
					now, err := snapshot.Now(t.Context(), conn)
					if err != nil {
						t.Fatal(err)
					}
					boundary = boundary.At(now)
				}
				confirmed, _, err := v.Confirm(t.Context(), boundary, acme)
				want := c.confirmed && !(boundary.Fresh() && c.setBack > 0)
				if err != nil || confirmed != want {
					t.Errorf("confirmed: %t, want %t; %v", confirmed, want, err)
				}
				now, err := snapshot.Now(t.Context(), conn)
				if err != nil || confirmed && !now.After(boundary.AsOf) {
					t.Errorf("at %v it is confirmed that nothing is stored until %v any more; %v", now, boundary.AsOf, err)
				}
			})
		}
	}
}

// Without a reading, and while rows arrive, no boundary is set without waiting.
func TestNotIdle(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	v := snapshot.NewView(conn)
	v.SetMargin(time.Hour)
	if boundary, ok := v.Derive(acme); ok {
		t.Error("idle without a reading")
	} else if confirmed, _, err := v.Confirm(t.Context(), boundary, acme); confirmed || err != nil {
		t.Errorf("no boundary was confirmed: %t, %v", confirmed, err)
	}
	read(t, conn, v)
	boundary := idle(t, v, acme)
	store(t, conn, "acme")
	if confirmed, _, err := v.Confirm(t.Context(), boundary, acme); confirmed || err != nil {
		t.Errorf("confirmed although rows arrived: %t, %v", confirmed, err)
	}
	if _, ok := v.Derive(acme); ok {
		t.Error("idle although a boundary was not confirmed")
	}
	store(t, conn, "others")
	const others schema.OrganizationID = "others"
	idle(t, v, others)
	read(t, conn, v)
	if _, ok := v.Derive(others); ok {
		t.Error("idle although the background reading found rows")
	}
}

// However many organizations are active, what is read and kept of them is bounded.
func TestActiveIsBounded(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	const organizations = snapshot.MaxActive + 500
	if err := conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO insert_counters SELECT 'runs', toString(number), 1,"+
		" now64(3) FROM numbers(%d)", organizations)); err != nil {
		t.Fatal(err)
	}
	active, err := snapshot.ReadActive(t.Context(), conn, time.Hour, 7)
	if err != nil || len(active) != 7 {
		t.Errorf("%d organizations were read, want 7: %v", len(active), err)
	}
	if active, err := snapshot.ReadActive(t.Context(), conn, 0, 7); err != nil || len(active) != 0 {
		t.Errorf("%v is active though nothing was stored just now: %v", active, err)
	}
	v := snapshot.NewView(conn)
	v.SetMargin(time.Hour)
	read(t, conn, v)
	kept := 0
	for n := range organizations {
		if _, ok := v.Derive(schema.OrganizationID(fmt.Sprint(n))); !ok {
			kept++
		}
	}
	if kept != snapshot.MaxActive {
		t.Errorf("%d active organizations are kept, want %d", kept, snapshot.MaxActive)
	}
}
