package settle_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/olap/settle"
)

// atOnce is an age that every sign of life has.
const atOnce = time.Nanosecond

// until polls a condition.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to that within a minute")
		}
		if err := moment.Pause(ctx, 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// kept checks that all runs are there and that the rollup is right after a lost lease.
func kept(t *testing.T, conn driver.Conn, runs int64) {
	t.Helper()
	all(t, conn)
	if n := number(t, conn, "SELECT toInt64(count()) FROM runs FINAL"); n != runs {
		t.Errorf("%d runs, want %d: a lost lease deleted some", n, runs)
	}
	if s := state(t, conn); s.Held {
		t.Errorf("the tables stay held: %+v", s)
	}
	if found := check(t, conn); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// Who stood still between two statements while another process took over changes nothing any more and releases
// nothing.
func TestLostLeaseChangesNothing(t *testing.T) {
	conn := refreshed(t, 40)
	err := settle.Hold(ctx, conn, func(ctx context.Context, lease *settle.Lease) error {
		if err := settle.Rebuild(ctx, conn, atOnce); err != nil {
			t.Fatal(err)
		}
		all(t, conn)
		if err := lease.Alter(ctx, "settled_runs", "DELETE", "1"); !errors.Is(err, settle.ErrLost) {
			t.Errorf("changing without the lease: %v", err)
		}
		return lease.Alter(ctx, "runs", "DELETE", "1")
	})
	if !errors.Is(err, settle.ErrLost) {
		t.Errorf("error %v, want that the lease was lost", err)
	}
	// One that did not notice in its last statement does not release what another process holds.
	err = settle.Hold(ctx, conn, func(outer context.Context, lease *settle.Lease) error {
		broken := errors.New("broken")
		defer settle.SetAbandoned(settle.SetAbandoned(-1))
		if err := settle.Rebuild(ctx, conn, atOnce); err != nil {
			t.Fatal(err)
		}
		err := settle.Hold(ctx, conn, func(context.Context, *settle.Lease) error { return broken })
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		return nil
	})
	if !errors.Is(err, settle.ErrLost) || !state(t, conn).Held {
		t.Errorf("error %v, held %v, want the lease of the other", err, state(t, conn).Held)
	}
	defer settle.SetAbandoned(settle.SetAbandoned(-1))
	kept(t, conn, 80)
}

// The store looks at the lease when it rewrites a part: a statement that it accepted under a lease that is lost by
// then changes nothing.
func TestFenceHoldsInTheStore(t *testing.T) {
	conn := refreshed(t, 40)
	exec := func(statement string) {
		t.Helper()
		if err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("SYSTEM STOP MERGES runs")
	ended := make(chan error, 2)
	go func() {
		ended <- settle.Hold(ctx, conn, func(ctx context.Context, lease *settle.Lease) error {
			return lease.Alter(ctx, "runs", "DELETE", "organization_id = 'acme'")
		})
	}()
	const mutating = "SELECT toInt64(count()) FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
	until(t, func() bool {
		return number(t, conn, mutating) == 1
	})
	first := state(t, conn).Hold
	go func() { ended <- settle.Rebuild(ctx, conn, atOnce) }()
	until(t, func() bool { return state(t, conn).Hold > first })
	exec("SYSTEM START MERGES runs")
	a, b := <-ended, <-ended
	if errors.Is(b, settle.ErrLost) {
		a, b = b, a
	}
	if !errors.Is(a, settle.ErrLost) || b != nil {
		t.Errorf("errors %v and %v, want one that lost the lease and one that rebuilt", a, b)
	}
	kept(t, conn, 80)
}

// Several that want a lease get it one after the other.
func TestOneLeaseAtATime(t *testing.T) {
	conn := refreshed(t, 10)
	var inside, times atomic.Int64
	var takers sync.WaitGroup
	for range 6 {
		takers.Go(func() {
			err := settle.Hold(ctx, conn, func(ctx context.Context, _ *settle.Lease) error {
				if inside.Add(1) > 1 {
					t.Error("two leases at once")
				}
				defer inside.Add(-1)
				times.Add(1)
				_, err := moment.ReadSettlement(ctx, conn)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	takers.Wait()
	if times.Load() != 6 {
		t.Errorf("%d changes, want 6", times.Load())
	}
	kept(t, conn, 20)
}

// Where nobody refreshes the rollup, who wants a lease takes over the one of a process that died.
func TestHoldTakesOver(t *testing.T) {
	conn := refreshed(t, 40)
	died := errors.New("died")
	err := settle.Hold(ctx, conn, func(ctx context.Context, lease *settle.Lease) error {
		if err := lease.Alter(ctx, "settled_runs", "DELETE", "organization_id = 'acme'"); err != nil {
			t.Fatal(err)
		}
		return died
	})
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	defer settle.SetAbandoned(settle.SetAbandoned(-1))
	done := false
	err = settle.Hold(ctx, conn, func(context.Context, *settle.Lease) error { done = true; return nil })
	if err != nil || !done {
		t.Errorf("error %v", err)
	}
	kept(t, conn, 80)
}

// A settler that stood still names no starters of rows that a purge has not changed yet.
func TestSettlerThatFellBehindNamesNobody(t *testing.T) {
	conn := refreshed(t, 40)
	before := state(t, conn)
	batch, err := settle.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = settle.Hold(ctx, conn, func(ctx context.Context, lease *settle.Lease) error {
		if err := lease.Alter(ctx, "starters", "DELETE", "1"); err != nil {
			return err
		}
		if err := batch.NameStarters(ctx, time.UnixMilli(0), before.Now); err != nil {
			t.Error(err)
		}
		if n := number(t, conn, "SELECT toInt64(count()) FROM starters"); n != 0 {
			t.Errorf("%d starters are named under a lease", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
