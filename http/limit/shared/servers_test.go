package shared

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit/redistest"
)

// three are the rates of three servers on one Redis.
func three(t *testing.T, address string, most int, span time.Duration) (rates []*Rates) {
	t.Helper()
	for range 3 {
		s, _ := open(t, address, long)
		rates = append(rates, s.Rates("rate", most, span))
	}
	return rates
}

// Of 61 at once on three servers 60 are admitted, and what each says of the window is true.
func TestSixtyOfSixtyOne(t *testing.T) {
	rates := three(t, redistest.Start(t).URL(), 60, time.Hour)
	var group sync.WaitGroup
	var admitted atomic.Int32
	left := make(chan int, 61)
	for i := range 61 {
		group.Go(func() {
			ok, state := rates[i%3].Take("key", time.Now())
			if ok {
				admitted.Add(1)
				left <- state.Remaining
			}
			if state.Limit != 60 || state.Reset <= 0 || state.Reset > time.Hour || !ok && state.Remaining != 0 {
				t.Errorf("%v, %+v", ok, state)
			}
		})
	}
	group.Wait()
	close(left)
	var all []int
	for n := range left {
		all = append(all, n)
	}
	slices.Sort(all)
	if admitted.Load() != 60 || all[0] != 0 || all[59] != 59 || len(slices.Compact(all)) != 60 {
		t.Errorf("%d admitted, with these left: %v", admitted.Load(), all)
	}
	if ok, _ := rates[1].Take("another", time.Now()); !ok {
		t.Error("another key is refused")
	}
}

// However three servers are pressed, no window of any place has more than the limit.
func TestNoWindowHasMore(t *testing.T) {
	const most, span = 20, 200 * time.Millisecond
	rates := three(t, redistest.Start(t).URL(), most, span)
	type hit struct{ before, after time.Time }
	var mu sync.Mutex
	var hits []hit
	var group sync.WaitGroup
	end, latest := time.Now().Add(8*span), time.Now().Add(time.Minute)
	going := func() bool { // on a slow machine until hits have left a window, too
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Before(end) || len(hits) <= most && time.Now().Before(latest)
	}
	for i := range 6 {
		group.Go(func() {
			for going() {
				before := time.Now()
				if ok, _ := rates[i%3].Take("key", before); ok {
					mu.Lock()
					hits = append(hits, hit{before, time.Now()})
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	slices.SortFunc(hits, func(a, b hit) int { return a.after.Compare(b.after) })
	for i := most; i < len(hits); i++ {
		first := slices.MinFunc(hits[i-most:i+1], func(a, b hit) int { return a.before.Compare(b.before) })
		if took := hits[i].after.Sub(first.before); took < span {
			t.Fatalf("%d hits within %v", most+1, took)
		}
	}
	if len(hits) <= most {
		t.Errorf("%d admitted in all: hits don't leave the window", len(hits))
	}
}

// One window, as of verifications: Full says what Take would do, and takes nothing.
func TestWindowOfAllServers(t *testing.T) {
	server := redistest.Start(t)
	one, _ := open(t, server.URL(), long)
	two, _ := open(t, server.URL(), long)
	a, b := one.Window("verification", 2, time.Hour), two.Window("verification", 2, time.Hour)
	now := time.Now()
	for range 3 {
		if a.Full(now) || b.Full(now) {
			t.Fatal("an empty window is full")
		}
	}
	for _, w := range []Window{a, b} {
		if ok, _ := w.Take(now); !ok {
			t.Error("refused")
		}
	}
	ok, wait := a.Take(now)
	if ok || wait <= 0 || wait > time.Hour || !a.Full(now) || !b.Full(now) {
		t.Errorf("the third: %v, wait %v, full %v and %v", ok, wait, a.Full(now), b.Full(now))
	}
}

// Names in Redis begin alike and tell nobody's key, and everything expires by itself and is bounded.
func TestWhatRedisKeeps(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, server.URL(), long)
	rates := s.Rates("rate", 3, time.Hour)
	for range 10 {
		rates.Take("rl_secret", time.Now())
	}
	s.Window("verification", 3, time.Hour).Take(time.Now())
	s.Rates("rate", 3, 100*time.Millisecond).Take("short", time.Now())
	// The tries and the short window end by themselves.
	for until := time.Now().Add(time.Minute); server.Do("DBSIZE") != "(integer) 2"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s of 2 keys are left", server.Do("DBSIZE"))
		}
	}
	for _, name := range []string{"rate:{" + tagOf("rl_secret") + "}", "verification:{" + tagOf("") + "}"} {
		left := server.Do("PTTL", prefix+name)
		if n, err := strconv.Atoi(strings.TrimPrefix(left, "(integer) ")); err != nil || n <= 0 || n > 3_600_000 {
			t.Errorf("%s expires in %s ms", name, left)
		}
	}
	if n := server.Do("LLEN", prefix+"rate:{"+tagOf("rl_secret")+"}"); n != "(integer) 3" {
		t.Errorf("%s hits are kept of 3", n)
	}
	if names := server.Do("KEYS", "*"); strings.Contains(names, "secret") {
		t.Errorf("the names tell the key: %s", names)
	}
}

// Once a window is known to be full, whoever filled it, requests of its key don't reach Redis.
func TestFloodsDoNotReachRedis(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, server.URL(), long)
	rates, window := s.Rates("rate", 2, time.Hour), s.Window("verification", 2, time.Hour)
	now := time.Now()
	another, _ := open(t, server.URL(), long)
	for range 2 {
		another.Rates("rate", 2, time.Hour).Take("key", now)
		another.Window("verification", 2, time.Hour).Take(now)
	}
	flood := func() {
		for range 100 {
			rates.Take("key", now)
			window.Full(now)
			window.Take(now)
		}
	}
	calls := func() string {
		for line := range strings.Lines(server.Do("INFO", "commandstats")) {
			if strings.Contains(line, "cmdstat_evalsha:") {
				return strings.Split(line, ",")[0]
			}
		}
		return ""
	}
	flood()
	before := calls()
	flood()
	if after := calls(); before == "" || after != before {
		t.Errorf("%s before, %s after the flood", before, after)
	}
	// What is known ends with the window.
	if ok, _ := rates.Take("key", now.Add(2*time.Hour)); ok {
		t.Error("Redis is not asked any more")
	}
}

// A hit that Redis refused takes no place in the server's own window.
func TestRefusedHitsDoNotCount(t *testing.T) {
	rates := three(t, redistest.Start(t).URL(), 3, time.Hour)
	now := time.Now()
	take(t, rates[0], 3)
	ok, state := rates[1].Take("key", now)
	if admitted, own := rates[1].own.Take("key", now.Add(state.Reset)); ok || !admitted || own.Remaining != 2 {
		t.Errorf("%v, after the wait of %v: %v, %+v; want 2 left of 3, without this one", ok, state.Reset, admitted, own)
	}
}
