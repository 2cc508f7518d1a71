package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap/cache"
)

// A gate is an execution that ends when it is let through, with the number of those begun before.
type gate struct {
	begun atomic.Int64
	open  chan struct{}
}

func (g *gate) run(ctx context.Context) (int64, error) {
	n := g.begun.Add(1)
	select {
	case <-g.open:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Callers that arrive while an execution runs share the next one; nobody joins an execution that has begun.
func TestWaitingCallersShareTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group cache.Group[int64]
		g := gate{open: make(chan struct{})}
		results := make(chan int64, 6)
		ask := func(name string) {
			go func() {
				n, err := group.Do(t.Context(), key(name), g.run)
				if err != nil {
					t.Error(err)
				}
				results <- n
			}()
			synctest.Wait()
		}
		for range 5 {
			ask("a")
		}
		if n := g.begun.Load(); n != 1 {
			t.Fatalf("%d executions began, want 1", n)
		}
		ask("b")
		if n := g.begun.Load(); n != 2 {
			t.Fatalf("%d executions began, want one of each key", n)
		}
		close(g.open)
		counts := map[int64]int{}
		for range 6 {
			counts[<-results]++
		}
		if counts[1] != 1 || counts[2] != 1 || counts[3] != 4 {
			t.Errorf("executions were shared by %v callers, want 1, 1 and 4", counts)
		}
	})
}

// The end of one caller does not touch the others; the end of all ends the execution, or keeps it from beginning.
func TestCallersEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group cache.Group[int64]
		g := gate{open: make(chan struct{})}
		ask := func(d time.Duration) chan error {
			result := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				_, err := group.Do(ctx, key("a"), g.run)
				result <- err
			}()
			synctest.Wait()
			return result
		}
		first, short, long := ask(time.Second), ask(2*time.Second), ask(4*time.Second)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("first: %v", err)
		}
		synctest.Wait()
		if n := g.begun.Load(); n != 2 {
			t.Fatalf("%d executions began, want 2: the next one when the first had ended", n)
		}
		gone := ask(500 * time.Millisecond) // before the next could begin
		if err := <-gone; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gone: %v", err)
		}
		if err := <-short; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("short: %v", err)
		}
		time.Sleep(time.Second) // of the bubble's clock: the execution outlives the short deadline
		g.open <- struct{}{}
		if err := <-long; err != nil {
			t.Errorf("long: %v", err)
		}
		synctest.Wait()
		if n := g.begun.Load(); n != 2 {
			t.Errorf("%d executions began, want 2: nobody waited for a third", n)
		}
		// All callers that wait for a running execution leave: its context ends.
		running, abandoned := ask(time.Second), ask(2*time.Second)
		<-running
		<-abandoned
		synctest.Wait()
		if n, err := group.Do(t.Context(), key("a"), func(context.Context) (int64, error) { return 7, nil }); n != 7 ||
			err != nil {
			t.Errorf("afterwards: %v, %v", n, err)
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group cache.Group[int]
		open := make(chan struct{})
		go group.Do(t.Context(), key("a"), func(context.Context) (int, error) { <-open; return 0, nil })
		synctest.Wait()
		result := make(chan error, 1)
		go func() {
			_, err := group.Do(t.Context(), key("a"), func(context.Context) (int, error) { panic("seen") })
			result <- err
		}()
		synctest.Wait()
		close(open)
		if err := <-result; err == nil {
			t.Error("no error")
		}
	})
}

// However calls, executions and ends of callers fall together, nobody sees a state older than the call.
func TestNobodySeesThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type call struct{ before, work, patience int }
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
			return call{rapid.IntRange(0, 5).Draw(t, "before"), rapid.IntRange(0, 5).Draw(t, "work"),
				rapid.IntRange(1, 12).Draw(t, "patience")}
		}), 1, 20).Draw(t, "calls")
		var group cache.Group[int64]
		var state atomic.Int64
		var wait sync.WaitGroup
		turn := make(chan struct{})
		for _, c := range calls {
			wait.Go(func() {
				for range c.before {
					<-turn
				}
				ctx, cancel := context.WithCancel(context.Background())
				wait.Go(func() {
					for range c.patience {
						<-turn
					}
					cancel()
				})
				seen := state.Add(1) // acknowledged before the call
				got, err := group.Do(ctx, key("a"), func(ctx context.Context) (int64, error) {
					now := state.Load()
					for range c.work {
						select {
						case <-turn:
						case <-ctx.Done():
							return 0, ctx.Err()
						}
					}
					return now, nil
				})
				if err == nil && got < seen {
					t.Errorf("saw state %d, %d was acknowledged before", got, seen)
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("failed with another caller's end: %v", err)
				}
			})
		}
		ended := make(chan struct{})
		go func() { wait.Wait(); close(ended) }()
		for {
			select {
			case turn <- struct{}{}:
			case <-ended:
				return
			}
		}
	})
}
