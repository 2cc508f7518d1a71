package rollup_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// The engine is killed at each rename of a refresh, which are those of the log's entries and of the rollup's parts. The
// refresh is then made again, as the server does. Every record is in the rollup once, without a rebuild.
func TestRefreshSurvivesKillsAtRenames(t *testing.T) {
	engine, dir := olaptest.OwnEngine(t)
	conn := engine.Conn()
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // the process that died is this one
	const most, of = 30, 4                          // merges rename, too
	least := 7                                      // the claim, a part for names, two for each table, the commit
	if testing.Short() {
		least -= of - 1 // the last ones may be none of the sample
	}
	last, late, sample := 0, 0, olaptest.NewSample(of)
	for n, killed := 1, true; killed && n <= most; n++ {
		if !sample.Try() {
			continue
		}
		load(t, conn, 10*n, []string{"RUNNING", "COMPLETED", "PAUSED"}[n%3])
		detach := clickhousetest.KillAtRename(t, dir, n)
		olaptest.Until(t, "it is refreshed", func() bool { return rollup.New(conn, quiet, 0).Refresh(ctx) == nil })
		if killed = detach(); killed {
			last = n
		}
		want := int64(2 * 10 * n)
		for _, query := range []string{
			"SELECT toInt64(sum(runs)) FROM rollup_runs", "SELECT toInt64(sum(records)) FROM rollup_attributions",
		} {
			if got := number(t, conn, query); got != want {
				t.Errorf("killed at rename %d: %d, want %d: %s", n, got, want, query)
			}
		}
		if !killed && n <= least && late < 5 { // what traces the engine may come too late on a busy machine
			late, killed = late+1, true
		}
	}
	if last < least {
		t.Errorf("the last kill that hit a refresh was at rename %d", last)
	}
	sound(t, conn)
}

// Of several refreshers that claim the same batch one has it.
func TestClaimsExcludeEachOther(t *testing.T) {
	conn := refreshed(t, 10)
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // every one tries, whoever claimed before
	for range 5 {
		before := state(t, conn)
		var claimed, refused, done atomic.Int64
		var refreshers sync.WaitGroup
		for range 6 {
			refreshers.Go(func() {
				batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
				if errors.Is(err, rollup.ErrClaimed) {
					refused.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				claimed.Add(1)
				switch err := batch.Done(ctx, before.Until); {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, rollup.ErrLost):
					t.Error(err)
				}
			})
		}
		refreshers.Wait()
		// A claim that was refused may have left its entry, which the next round takes over.
		unended := state(t, conn).Refreshing && done.Load() == claimed.Load() && refused.Load() == 0
		if claimed.Load() == 0 || done.Load() == 0 || unended {
			t.Errorf("%d claimed, %d did the batch", claimed.Load(), done.Load())
		}
	}
}

// A refresher that was paused while another one took over its batch writes nothing and moves nothing, whatever it still
// sends.
func TestLostClaimWritesNothing(t *testing.T) {
	conn := refreshed(t, 40)
	load(t, conn, 50, "COMPLETED")
	before := state(t, conn)
	stopped, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rollup.New(conn, quiet, 0).Claim(ctx); !errors.Is(err, rollup.ErrClaimed) {
		t.Errorf("a second claim: %v", err)
	}
	defer rollup.SetClaimAge(rollup.SetClaimAge(0))
	taken, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(b rollup.Batch, runs int64) {
		t.Helper()
		if err := b.Insert(ctx, before.Until, before.Now); err != nil {
			t.Error(err)
		}
		if n := number(t, conn, "SELECT toInt64(sum(runs)) FROM rollup_runs"); n != runs {
			t.Errorf("%d runs are in the rollup, want %d", n, runs)
		}
	}
	insert(stopped, 80)
	if err := stopped.Done(ctx, before.Now); !errors.Is(err, rollup.ErrLost) {
		t.Errorf("committing without the claim: %v", err)
	}
	if s := state(t, conn); !s.Until.Equal(before.Until) {
		t.Errorf("the watermark was moved from %v to %v", before.Until, s.Until)
	}
	insert(taken, 100)
	insert(taken, 100) // once more, as after a crash that hid the outcome
	insert(stopped, 100)
	if err := taken.Done(ctx, before.Now); err != nil {
		t.Error(err)
	}
	insert(taken, 100) // too late, and the same
	all(t, conn)
	sound(t, conn)
}

// Who takes a batch over waits for what its predecessor has sent and what still runs.
func TestClaimWaitsForRunningInserts(t *testing.T) {
	conn := refreshed(t, 10)
	const runs = "SELECT toInt64(count()) FROM system.processes WHERE query_id = 'runlens-refresh-slow'"
	ended := make(chan error, 1)
	go func() {
		slow := clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryPrefix+"slow"))
		ended <- conn.Exec(slow, "SELECT sleepEachRow(0.5) FROM numbers(4) SETTINGS max_block_size = 1 FORMAT Null")
	}()
	olaptest.Until(t, "the insert runs", func() bool { return number(t, conn, runs) == 1 })
	if _, err := rollup.New(conn, quiet, 0).Claim(ctx); err != nil {
		t.Error(err)
	}
	if n := number(t, conn, runs); n != 0 {
		t.Error("the claim was given while an insert of another one ran")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A claim that a change took over does not come back when the change ends. Nothing is written under it, nor a name.
func TestChangeEndsClaims(t *testing.T) {
	conn := refreshed(t, 40)
	before := state(t, conn)
	batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := rollup.Rebuild(ctx, conn); err != nil {
		t.Fatal(err)
	}
	if err := batch.Insert(ctx, time.UnixMilli(0), before.Now); err != nil {
		t.Error(err)
	}
	if err := batch.NameInitiatorKeys(ctx, time.UnixMilli(0), before.Now); err != nil {
		t.Error(err)
	}
	const written = "SELECT toInt64((SELECT count() FROM rollup_runs) + (SELECT count() FROM initiator_keys))"
	if n := number(t, conn, written); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if err := batch.Done(ctx, before.Now); !errors.Is(err, rollup.ErrLost) ||
		!state(t, conn).StoreWatermark().IsZero() {
		t.Errorf("the emptied rollup is in use: %v", err)
	}
	all(t, conn)
	sound(t, conn)
}
