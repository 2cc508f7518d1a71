package rollup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// A program of the first release that died while it changed something left a lease: whatever it left of the rollup is
// built again, by a refresher or by whoever changes something.
func TestLeaseIsTakenOver(t *testing.T) {
	sample := olaptest.NewSample(2)
	for name, next := range map[string]func(driver.Conn) error{
		"a refresher": func(conn driver.Conn) error { return rollup.New(conn, quiet, 0).Refresh(ctx) },
		"a change": func(conn driver.Conn) error {
			return rollup.WithChange(ctx, conn, func(ctx context.Context, _ *rollup.Change) error { return nil })
		},
		"a rebuild": func(conn driver.Conn) error { return rollup.Rebuild(ctx, conn) },
		"who resolves": func(conn driver.Conn) error {
			since := state(t, conn).Now
			olaptest.Load(t, conn, olaptest.Records{Attributions: []olaptest.Attribution{
				copyOf("moved", 1, "interacted", 0), copyOf("moved", 1, "interacted", time.Hour),
			}})
			_, err := rollup.New(conn, quiet, 0).Resolve(ctx, since)
			return err
		},
	} {
		if !sample.Try() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			conn := refreshed(t, 40)
			lease(t, conn, "10") // it is alive
			execute(t, conn, "ALTER TABLE rollup_runs DELETE WHERE organization_id = 'acme' SETTINGS mutations_sync = 2")
			if more, err := rollup.New(conn, quiet, 0).Step(ctx); more || err != nil || !state(t, conn).Leased {
				t.Errorf("a refresher ended the lease: %v, %v", more, err)
			}
			lease(t, conn, "121")
			if err := next(conn); err != nil {
				t.Error(err)
			}
			if s := state(t, conn); s.Leased {
				t.Errorf("%+v", s)
			}
			kept(t, conn, 80)
		})
	}
}

// lease writes the lease of a program of the first release whose last sign of life was so many seconds ago.
func lease(t *testing.T, conn driver.Conn, ago string) {
	t.Helper()
	execute(t, conn, "INSERT INTO rollup_log (kind, latest) SELECT 'lease', (max(tupleElement(latest, 1)) + 1,"+
		" 7, now64(3) - toIntervalSecond("+ago+")) FROM rollup_log")
}

// A check does not wait for somebody to build the rollup again, who may not be there, and does not do it itself.
func TestCheckRefusesAnAbandonedLease(t *testing.T) {
	conn := refreshed(t, 40)
	lease(t, conn, "121")
	if found, err := rollup.Check(ctx, conn); !errors.Is(err, rollup.ErrNothingToCheck) {
		t.Errorf("%v, %v", found, err)
	}
	if s := state(t, conn); !s.Leased {
		t.Errorf("%+v", s)
	}
}

// Where the store's clock was set back, the rollup is not read until a refresher has moved the watermark back. That a
// change or a comparison ends in between says nothing of it.
func TestTheEndOfAChangeIsNoCommit(t *testing.T) {
	conn := refreshed(t, 10)
	held := olaptest.Hold(conn)
	view := snapshot.NewView(held)
	usable := func() bool {
		t.Helper()
		s, err := view.Take(ctx, snapshot.InFlight|snapshot.RollupLog, "acme")
		if err != nil {
			t.Fatal(err)
		}
		return !s.Log.StoreWatermark().IsZero()
	}
	if !usable() {
		t.Fatal("the rollup is not read")
	}
	held.Shift(-snapshot.ClockMargin)
	if usable() {
		t.Error("the rollup is read although the clock was set back")
	}
	if err := rollup.WithChange(ctx, held, func(context.Context, *rollup.Change) error { return nil }); err != nil {
		t.Fatal(err)
	}
	held.Shift(snapshot.ClockMargin) // it has passed the watermark and the last commit
	if usable() {
		t.Error("the rollup is read as soon as a change has ended")
	}
	if err := rollup.New(held, quiet, 0).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if !usable() {
		t.Error("the rollup is not read after a refresh")
	}
}
