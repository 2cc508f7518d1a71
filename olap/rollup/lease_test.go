package rollup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
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
		if err := snapshot.Pause(ctx, 5*time.Millisecond); err != nil {
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
	if s := state(t, conn); s.Leased {
		t.Errorf("the tables stay leased: %+v", s)
	}
	if found := check(t, conn); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A process that was paused between two statements while another one took over changes nothing any more and releases
// nothing.
func TestLostLeaseChangesNothing(t *testing.T) {
	conn := refreshed(t, 40)
	err := rollup.WithLease(ctx, conn, func(ctx context.Context, lease *rollup.Lease) error {
		if err := rollup.Rebuild(ctx, conn, atOnce); err != nil {
			t.Fatal(err)
		}
		all(t, conn)
		if err := lease.Alter(ctx, "rollup_runs", "DELETE", "1"); !errors.Is(err, rollup.ErrLost) {
			t.Errorf("changing without the lease: %v", err)
		}
		return lease.Alter(ctx, "runs", "DELETE", "1")
	})
	if !errors.Is(err, rollup.ErrLost) {
		t.Errorf("error %v, want that the lease was lost", err)
	}
	// One that did not notice in its last statement does not release the lease of another process.
	err = rollup.WithLease(ctx, conn, func(outer context.Context, lease *rollup.Lease) error {
		broken := errors.New("broken")
		defer rollup.SetAbandoned(rollup.SetAbandoned(-1))
		if err := rollup.Rebuild(ctx, conn, atOnce); err != nil {
			t.Fatal(err)
		}
		err := rollup.WithLease(ctx, conn, func(context.Context, *rollup.Lease) error { return broken })
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		return nil
	})
	if !errors.Is(err, rollup.ErrLost) || !state(t, conn).Leased {
		t.Errorf("error %v, leased %v, want the lease of the other", err, state(t, conn).Leased)
	}
	defer rollup.SetAbandoned(rollup.SetAbandoned(-1))
	kept(t, conn, 80)
}

// The store evaluates the lease when it rewrites a part: a statement that it accepted under a lease that is lost by
// then changes nothing.
func TestFenceIsEvaluatedInTheStore(t *testing.T) {
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
		ended <- rollup.WithLease(ctx, conn, func(ctx context.Context, lease *rollup.Lease) error {
			return lease.Alter(ctx, "runs", "DELETE", "organization_id = 'acme'")
		})
	}()
	const mutating = "SELECT toInt64(count()) FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
	until(t, func() bool {
		return number(t, conn, mutating) == 1
	})
	first := state(t, conn).Lease
	go func() { ended <- rollup.Rebuild(ctx, conn, atOnce) }()
	until(t, func() bool { return state(t, conn).Lease > first })
	exec("SYSTEM START MERGES runs")
	a, b := <-ended, <-ended
	if errors.Is(b, rollup.ErrLost) {
		a, b = b, a
	}
	if !errors.Is(a, rollup.ErrLost) || b != nil {
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
			err := rollup.WithLease(ctx, conn, func(ctx context.Context, _ *rollup.Lease) error {
				if inside.Add(1) > 1 {
					t.Error("two leases at once")
				}
				defer inside.Add(-1)
				times.Add(1)
				_, err := snapshot.ReadLog(ctx, conn)
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
func TestLeaseIsTakenOver(t *testing.T) {
	conn := refreshed(t, 40)
	died := errors.New("died")
	err := rollup.WithLease(ctx, conn, func(ctx context.Context, lease *rollup.Lease) error {
		if err := lease.Alter(ctx, "rollup_runs", "DELETE", "organization_id = 'acme'"); err != nil {
			t.Fatal(err)
		}
		return died
	})
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	defer rollup.SetAbandoned(rollup.SetAbandoned(-1))
	done := false
	err = rollup.WithLease(ctx, conn, func(context.Context, *rollup.Lease) error { done = true; return nil })
	if err != nil || !done {
		t.Errorf("error %v", err)
	}
	kept(t, conn, 80)
}

// A refresher that was paused names no initiator keys of rows that a purge has not changed yet.
func TestStaleRefresherNamesNoKeys(t *testing.T) {
	conn := refreshed(t, 40)
	before := state(t, conn)
	batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = rollup.WithLease(ctx, conn, func(ctx context.Context, lease *rollup.Lease) error {
		if err := lease.Alter(ctx, "initiator_keys", "DELETE", "1"); err != nil {
			return err
		}
		if err := batch.NameInitiatorKeys(ctx, time.UnixMilli(0), before.Now); err != nil {
			t.Error(err)
		}
		if n := number(t, conn, "SELECT toInt64(count()) FROM initiator_keys"); n != 0 {
			t.Errorf("%d initiator keys are named under a lease", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
