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
	b := NewShares(10, 10).Of("")
	if !b.Take(4) || !b.Take(6) || b.Take(1) || b.shares.taken != 10 {
		t.Error("10 bytes are not exactly 10")
	}
	b.Give(4)
	if b.Take(5) || !b.Take(4) {
		t.Error("what was given back cannot be taken exactly once")
	}
}

// A window that is full elsewhere refuses until then, and its wait is that of both.
func TestClosedWindow(t *testing.T) {
	k := NewKeyed(2, time.Minute)
	k.Take("a", start)
	k.Close("a", start.Add(20*time.Second), start)
	for _, x := range []struct {
		after, reset time.Duration
		ok           bool
		left         int
	}{
		{0, 20 * time.Second, false, 0}, {19 * time.Second, time.Second, false, 0},
		{20 * time.Second, 40 * time.Second, true, 0}, {21 * time.Second, 39 * time.Second, false, 0},
	} {
		now := start.Add(x.after)
		if full := k.Full("a", now); full == x.ok {
			t.Errorf("after %v: full %v", x.after, full)
		}
		if ok, state := k.Take("a", now); ok != x.ok || state != (State{2, x.left, x.reset}) {
			t.Errorf("after %v: %v, %+v", x.after, ok, state)
		}
	}
	k.Close("a", start.Add(30*time.Second), start) // its own hits stay longer
	if _, state := k.Take("a", start.Add(25*time.Second)); state.Reset != 35*time.Second {
		t.Errorf("a wait of %v, want that for the oldest hit", state.Reset)
	}
	// It is kept as long as it is closed.
	k.Close("b", start.Add(10*time.Minute), start)
	for i := range 5 {
		if ok, _ := k.Take("b", start.Add(time.Duration(i)*2*time.Minute)); ok {
			t.Errorf("admitted after %d minutes of 10", 2*i)
		}
	}
}

// A hit that was released counts no more, and no other does.
func TestReleasedHit(t *testing.T) {
	k := NewKeyed(2, time.Minute)
	k.Release("a", start)
	k.Take("a", start)
	k.Take("a", start.Add(time.Second))
	k.Release("a", start.Add(2*time.Second)) // no such hit
	if !k.Full("a", start.Add(2*time.Second)) {
		t.Error("a hit was released that is another")
	}
	k.Release("a", start)
	if ok, state := k.Take("a", start.Add(3*time.Second)); !ok || state.Reset != 58*time.Second {
		t.Errorf("%v, %+v; want the hit of second 1 as the oldest", ok, state)
	}
}
