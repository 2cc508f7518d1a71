package limit

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Spec section 8: 60 in any 60 seconds. Whatever the arrivals, the window admits exactly when a
// naive count of the span before says so, and its wait is true when obeyed.
func TestWindowIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		w := NewWindow(most, time.Minute)
		var admitted []time.Time
		now := start
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "pause")) * time.Millisecond)
			within := 0
			for _, at := range admitted {
				if now.Sub(at) < time.Minute {
					within++
				}
			}
			ok, state := w.TakeState(now)
			if ok != (within < most) {
				t.Fatalf("admitted %v with %d of %d in the window", ok, within, most)
			}
			if ok {
				admitted = append(admitted, now)
				within++
			}
			if state.Limit != most || state.Remaining != most-within || state.Reset <= 0 || state.Reset > time.Minute {
				t.Fatalf("state %+v with %d of %d", state, within, most)
			}
			if !ok {
				now = now.Add(state.Reset)
				if again, _ := w.Take(now); !again {
					t.Fatalf("refused after the wait of %v that it named", state.Reset)
				}
				admitted = append(admitted, now)
			}
		}
		if len(w.hits) > 2*most+1 {
			t.Fatalf("%d hits are kept for %d", len(w.hits), most)
		}
	})
}

// There is no border at which a burst could double.
func TestNoDoubleBurst(t *testing.T) {
	w := NewWindow(60, time.Minute)
	admitted := 0
	for i := range 200 {
		if ok, _ := w.Take(start.Add(59*time.Second + time.Duration(i)*10*time.Millisecond)); ok {
			admitted++
		}
	}
	if admitted != 60 {
		t.Errorf("%d admitted around a full minute, want 60", admitted)
	}
}

func TestKeyedWindowsAreApartAndForgotten(t *testing.T) {
	k := NewKeyed(1, time.Minute)
	if a, _ := k.Take("a", start); !a {
		t.Error("a refused")
	}
	if a, _ := k.Take("a", start); a {
		t.Error("a admitted twice")
	}
	if b, _ := k.Take("b", start); !b {
		t.Error("b refused because of a")
	}
	for i := range 1000 {
		k.Take(fmt.Sprint(i), start.Add(time.Duration(i)*time.Millisecond))
	}
	if k.Take("later", start.Add(2*time.Minute)); len(k.windows) != 1 {
		t.Errorf("%d windows are kept, want the one that is not idle", len(k.windows))
	}
}

func TestConcurrency(t *testing.T) {
	c := NewConcurrency(2, 3)
	acquire := func(group string) func(time.Time) {
		release, _ := c.Acquire(group, start)
		return release
	}
	first, second := acquire("a"), acquire("a")
	if first == nil || second == nil || acquire("a") != nil {
		t.Error("a group of 2 has not exactly 2")
	}
	if acquire("b") == nil || acquire("c") != nil || c.Running() != 3 {
		t.Error("all groups of 3 have not exactly 3")
	}
	first(start)
	first(start) // once more frees nothing
	if c.Running() != 2 || acquire("c") == nil || acquire("a") != nil {
		t.Error("a released slot is not free exactly once")
	}
}

// Contract 4.21: the wait is how long the oldest of those in the way should still take.
func TestConcurrencyTellsWhenToComeBack(t *testing.T) {
	c := NewConcurrency(2, 3)
	wait := func(group string, after time.Duration) time.Duration {
		release, wait := c.Acquire(group, start.Add(after))
		if release != nil {
			t.Fatalf("%s got a slot", group)
		}
		return wait
	}
	for range 20 { // each takes 10 s
		release, _ := c.Acquire("a", start)
		release(start.Add(10 * time.Second))
	}
	c.Acquire("b", start)
	c.Acquire("a", start.Add(2*time.Second))
	c.Acquire("a", start.Add(3*time.Second))
	for _, x := range []struct {
		group       string
		after, want time.Duration
	}{
		{"a", 5 * time.Second, 7 * time.Second},  // until the group's own oldest, of second 2, is done at 12
		{"c", 5 * time.Second, 5 * time.Second},  // until the oldest of all, of second 0, is done at 10
		{"a", 20 * time.Second, 0 * time.Second}, // overdue
	} {
		if got := wait(x.group, x.after).Round(time.Millisecond); got != x.want {
			t.Errorf("%s after %v: wait %v, want %v", x.group, x.after, got, x.want)
		}
	}
}

func TestBytes(t *testing.T) {
	b := NewBytes(10)
	if !b.Take(4) || !b.Take(6) || b.Take(1) || b.taken != 10 {
		t.Error("10 bytes are not exactly 10")
	}
	b.Give(4)
	if b.Take(5) || !b.Take(4) {
		t.Error("what was given back cannot be taken exactly once")
	}
}
