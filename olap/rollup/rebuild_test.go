package rollup_test

import (
	"errors"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A rebuild dies when nothing counts as refreshed any more, and ClickHouse, which was started again, still empties the
// rollup for it. A refresh batch writes, and commits, when that has ended.
func TestARebuildThatDied(t *testing.T) {
	conn := refreshed(t, 40)
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // the process that died is this one
	// A claim, the commit, the next claim and damage of no organization.
	if err := rollup.Rebuild(ctx, &dyingConn{Conn: conn, left: 4}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	zero := time.UnixMilli(0)
	if s := state(t, conn); !s.Changing() || !s.Until.Equal(zero) || s.LastDamage != s.Begun {
		t.Fatalf("the rebuild died elsewhere: %+v", s)
	}
	// A mutation that found its fence valid, and has not replaced its part.
	execute(t, conn, "SYSTEM STOP MERGES rollup_runs",
		"ALTER TABLE rollup_runs DELETE WHERE 1 SETTINGS mutations_sync = 0")
	held, waited := olaptest.Hold(conn), false
	held.After("system.mutations", func() {
		waited = true
		if s := state(t, conn); !s.Until.Equal(zero) {
			t.Errorf("refreshed until %s while the rollup is being emptied", s.Until)
		}
		execute(t, conn, "SYSTEM START MERGES rollup_runs")
	})
	if err := rollup.New(held, quiet, 0).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if !waited {
		t.Error("a refresh batch does not wait for mutations")
		execute(t, conn, "SYSTEM START MERGES rollup_runs")
	}
	olaptest.Until(t, "every mutation is done", func() bool {
		return number(t, conn, "SELECT toInt64(countIf(NOT is_done)) FROM system.mutations") == 0
	})
	if n := number(t, conn, "SELECT toInt64(sum(runs)) FROM rollup_runs"); n != 80 || !state(t, conn).Until.After(zero) {
		t.Errorf("%d runs are refreshed until %s, want 80", n, state(t, conn).Until)
	}
	sound(t, conn)
	// From then on no batch asks.
	load(t, conn, 50, "RUNNING")
	held.After("system.mutations", func() { t.Error("a batch after the first one waits too") })
	if err := rollup.New(held, quiet, 0).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
}
