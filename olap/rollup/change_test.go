package rollup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// kept checks that all runs are there and that the rollup is right after a lost claim.
func kept(t *testing.T, conn driver.Conn, runs int64) {
	t.Helper()
	all(t, conn)
	if n := number(t, conn, "SELECT toInt64(count()) FROM runs FINAL"); n != runs {
		t.Errorf("%d runs, want %d: a lost claim deleted some", n, runs)
	}
	if s := state(t, conn); s.Refreshing {
		t.Errorf("the rollup stays claimed: %+v", s)
	}
	checker := rollup.NewChecker(conn, olaptest.Anyone, quiet)
	steps(t, checker, func() bool { return len(state(t, conn).Damaged) == 0 })
	sound(t, conn)
}

const ofAcme = "SELECT 'acme' AS organization_id"

// While records of an organization are changed, its queries don't use the rollup, those of another one do, and nobody
// refreshes.
func TestChange(t *testing.T) {
	conn := refreshed(t, 40)
	before := state(t, conn)
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		if err := change.Damage(ctx, ofAcme); err != nil {
			return err
		}
		s := state(t, conn)
		for _, source := range []string{"runs", "attributions"} {
			acme := snapshot.Records{Organization: "acme", Source: source}
			globex := snapshot.Records{Organization: "globex", Source: source}
			if !s.Watermark(acme).IsZero() || !s.Watermark(globex).Equal(before.Until) {
				t.Errorf("%s: queries of acme use the rollup, or those of globex don't: %+v", source, s)
			}
		}
		load(t, conn, 50, "COMPLETED")
		if _, err := rollup.New(conn, quiet, 0).Step(ctx); err != nil {
			t.Error(err)
		}
		if n := number(t, conn, "SELECT toInt64(sum(runs)) FROM rollup_runs"); n != 80 {
			t.Errorf("%d runs are refreshed during a change, want 80 as before", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := state(t, conn)
	if s.Refreshing || len(s.Damaged) > 0 || !s.Until.Equal(before.Until) || !s.CommittedAt.Equal(before.CommittedAt) {
		t.Errorf("after the change %+v, before %+v", s, before)
	}
	kept(t, conn, 100)
}

// failChange makes a change of acme that takes its runs out of the rollup and fails.
func failChange(t *testing.T, conn driver.Conn) {
	t.Helper()
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		if err := change.Damage(ctx, ofAcme); err != nil {
			return err
		}
		if err := change.Alter(ctx, "rollup_runs", "DELETE", "organization_id = 'acme'"); err != nil {
			return err
		}
		return errDied
	})
	if !errors.Is(err, errDied) {
		t.Errorf("error %v, want that of the change", err)
	}
}

// A change that failed leaves damage of its organization, which a checker repairs, and nothing to wait for.
func TestChangeThatFailed(t *testing.T) {
	conn := refreshed(t, 40)
	failChange(t, conn)
	if s := state(t, conn); len(s.Damaged) != 2 || s.Refreshing {
		t.Errorf("%+v", s)
	}
	if found := check(t, conn); len(found) == 0 {
		t.Error("nothing is damaged")
	}
	// Another change of it, which succeeds, leaves what it did not damage.
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		return errors.Join(change.Damage(ctx, ofAcme), conn.Exec(ctx, "OPTIMIZE TABLE rollup_log FINAL"))
	})
	if s := state(t, conn); err != nil || len(s.Damaged) != 2 {
		t.Errorf("error %v, %+v, want the damage of before", err, s)
	}
	kept(t, conn, 80)
}

// What was answered in the middle of a change that died is out of date when a repair begins, not only when it ends.
func TestARepairOutdatesAnswersFirst(t *testing.T) {
	conn := refreshed(t, 40)
	failChange(t, conn)
	taken := func() snapshot.Snapshot {
		t.Helper()
		s, err := snapshot.NewView(conn).Take(ctx, 0, "acme")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before, asked := taken(), false
	held := olaptest.Hold(conn)
	held.After("FROM system.parts", func() { // before anything is compared
		if asked = true; !before.Altered(taken()) {
			t.Error("what was answered before is answered again")
		}
	})
	steps(t, rollup.NewChecker(held, olaptest.Anyone, quiet), func() bool { return asked })
}

// A process that was paused between two statements while another one took over changes nothing any more, and ends
// nobody else's claim.
func TestLostChangeChangesNothing(t *testing.T) {
	conn := refreshed(t, 40)
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // every claim is taken over
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		if err := change.Damage(ctx, ofAcme); err != nil {
			return err
		}
		if err := rollup.Rebuild(ctx, conn); err != nil {
			t.Fatal(err)
		}
		all(t, conn)
		if err := change.Alter(ctx, "rollup_runs", "DELETE", "1"); !errors.Is(err, rollup.ErrLost) {
			t.Errorf("changing without the claim: %v", err)
		}
		if err := change.Damage(ctx, ofAcme); !errors.Is(err, rollup.ErrLost) {
			t.Errorf("damaging without the claim: %v", err)
		}
		return change.Alter(ctx, "runs", "DELETE", "1")
	})
	if !errors.Is(err, rollup.ErrLost) {
		t.Errorf("error %v, want that the claim was lost", err)
	}
	// One that did not notice in its last statement does not end the claim of another process.
	err = rollup.WithChange(ctx, conn, func(ctx context.Context, _ *rollup.Change) error {
		_, err := rollup.New(conn, quiet, 0).Claim(ctx)
		return err
	})
	if s := state(t, conn); !errors.Is(err, rollup.ErrLost) || !s.Refreshing || s.Changing() {
		t.Errorf("error %v, %+v, want the claim of the other", err, s)
	}
	kept(t, conn, 80)
}

// The store evaluates the claim when it rewrites a part: a statement that it accepted under a claim that is lost by
// then changes nothing.
func TestFenceIsEvaluatedInTheStore(t *testing.T) {
	conn := refreshed(t, 40)
	execute(t, conn, "SYSTEM STOP MERGES runs")
	ended := make(chan error, 1)
	go func() {
		ended <- rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
			return change.Alter(ctx, "runs", "DELETE", "organization_id = 'acme'")
		})
	}()
	const mutating = "SELECT toInt64(uniqExact(mutation_id)) FROM system.mutations" + // it has a row for each partition
		" WHERE database = currentDatabase() AND NOT is_done"
	olaptest.Until(t, "the mutation runs", func() bool {
		return number(t, conn, mutating) == 1
	})
	// Another process takes over, as it may when no statement of the change runs.
	execute(t, conn, "INSERT INTO rollup_log (kind, latest) SELECT 'begin', (max(tupleElement(latest, 1)) + 1, 1,"+
		" now64(3)) FROM rollup_log", "SYSTEM START MERGES runs")
	if err := <-ended; !errors.Is(err, rollup.ErrLost) {
		t.Errorf("error %v, want that the claim was lost", err)
	}
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // nobody has that claim
	kept(t, conn, 80)
}

// Several that change something do so one after the other, also beside a refresher that always has something to do.
func TestOneChangeAtATime(t *testing.T) {
	conn := refreshed(t, 10)
	refreshing, stop := context.WithCancel(ctx)
	var refreshers, takers sync.WaitGroup
	refreshers.Go(func() {
		for n := 11; refreshing.Err() == nil; n++ {
			load(t, conn, n, "RUNNING")
			if _, err := rollup.New(conn, quiet, 0).Step(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	var inside, times atomic.Int64
	for range 6 {
		takers.Go(func() {
			err := rollup.WithChange(ctx, conn, func(ctx context.Context, _ *rollup.Change) error {
				if inside.Add(1) > 1 {
					t.Error("two changes at once")
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
	stop()
	refreshers.Wait()
	if times.Load() != 6 {
		t.Errorf("%d changes, want 6", times.Load())
	}
	kept(t, conn, number(t, conn, "SELECT toInt64(count()) FROM runs FINAL"))
}
