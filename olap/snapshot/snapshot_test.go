package snapshot_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A ClickHouse that is silent for as long as a reading may take has too much to do: the question is asked again later.
func TestSilenceIsOverload(t *testing.T) {
	v := snapshot.NewView(olaptest.OpenStore(t).Conn())
	v.SetPatience(0)
	_, taken := v.Take(t.Context(), snapshot.InFlight, acme)
	_, sized := v.Size(t.Context(), snapshot.Records{Organization: acme, Source: schema.TableRuns})
	_, counted := v.Counted(t.Context())
	for what, err := range map[string]error{"snapshot": taken, "overview": sized, "views": counted} {
		if !errors.Is(err, failure.ErrOverloaded) {
			t.Errorf("%s: %v, want that ClickHouse has too much to do", what, err)
		}
	}
}

// Two snapshots of an organization are the same if nothing of it was stored between them; those of some of its records,
// if nothing of those was; those of the rollup, if it was not refreshed either.
func TestSame(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	v := snapshot.NewView(conn)
	runs := snapshot.Records{Organization: acme, Source: schema.TableRuns}
	attributions := snapshot.Records{Organization: acme, Source: schema.TableAttributions}
	all := snapshot.Records{Organization: acme}
	for _, c := range []struct {
		name              string
		do                func()
		runs, other, both bool
		rollup            bool
	}{
		{"nothing", func() {}, true, true, true, true},
		{"a run", func() { store(t, conn, "acme") }, false, true, false, true},
		{"a run of others", func() { store(t, conn, "others") }, true, true, true, true},
		{"a refresh", func() { refresh(t, conn) }, true, true, true, false},
		{"a rebuild", func() {
			if err := rollup.Rebuild(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
		}, false, false, false, false},
		{"an insert that failed", func() {
			if conn.Exec(t.Context(), "INSERT INTO runs (organization_id) SELECT toString(throwIf(1))") == nil {
				t.Fatal("it did not fail")
			}
		}, false, false, false, false},
	} {
		before := take(t, v)
		c.do()
		after := take(t, v)
		if a, b, d := before.Same(after, runs), before.Same(after, attributions), before.Same(after, all); a != c.runs ||
			b != c.other || d != c.both {
			t.Errorf("%s: the same runs %t, attribution records %t, all %t; want %t, %t, %t", c.name, a, b, d, c.runs,
				c.other, c.both)
		}
		if got := before.SameRollup(after, all); got != (c.rollup && c.both) {
			t.Errorf("%s: the same rollup: %t", c.name, got)
		}
	}
}

// What is stored while a snapshot is being taken, between its two statements, is counted in it.
func TestStoredBetweenTheStatementsOfASnapshot(t *testing.T) {
	store := func(conn driver.Conn) { store(t, conn, "acme") }
	conn := olaptest.OpenStore(t).Conn()
	held := olaptest.Hold(conn)
	v := snapshot.NewView(held)
	store(conn)
	before := take(t, v)
	held.Restart()
	held.Before(2, func() { store(conn) })
	during := take(t, v)
	if held.Sent() != 2 {
		t.Errorf("%d statements, want 2", held.Sent())
	}
	all := snapshot.Records{Organization: acme}
	if before.Same(during, all) || !during.Same(take(t, v), all) {
		t.Error("what was stored between the statements is not counted")
	}
}

// Callers who wait at once share snapshots, each of which has the counts of all of them and began after they called.
func TestSnapshotsAreShared(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	held := olaptest.Hold(conn)
	v := snapshot.NewView(held)
	store(t, conn, "acme")
	store(t, conn, "others")
	const callers = 20
	entered, leave := make(chan struct{}), make(chan struct{})
	held.Before(1, func() { close(entered); <-leave })
	var waiting sync.WaitGroup
	waiting.Go(func() { take(t, v) })
	<-entered
	for n := range callers {
		of := []schema.OrganizationID{"acme", "others"}[n%2]
		waiting.Go(func() {
			s, err := v.Take(t.Context(), 0, of)
			if err != nil || s.Clock(of).IsZero() || s.StoredUntil(time.UnixMilli(0), of) {
				t.Errorf("%s: nothing was stored: %v", of, err)
			}
		})
	}
	for v.Waiting() < callers {
	}
	close(leave)
	waiting.Wait()
	if held.Sent() != 3 { // two of the first one, one of the next
		t.Errorf("%d statements, want 3", held.Sent())
	}
}

func refresh(t *testing.T, conn driver.Conn) {
	t.Helper()
	if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, v *snapshot.View) snapshot.Snapshot {
	t.Helper()
	s, err := v.Take(t.Context(), snapshot.InFlight|snapshot.RollupLog, acme)
	if err != nil {
		t.Error(err)
	}
	return s
}
