package shared

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/http/limit/redistest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// long is a patience that no loaded machine exhausts.
const long = time.Minute

// open opens a store on a Redis and follows it.
func open(t testing.TB, address string, patience time.Duration) (*Store, *logtest.Buffer) {
	t.Helper()
	log := &logtest.Buffer{}
	s, err := Open(address, patience, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { s.Follow(ctx) })
	t.Cleanup(func() {
		stop()
		following.Wait()
		s.Close()
	})
	return s, log
}

// A timed runs the script at instants of the test's choice.
type timed struct {
	t      *testing.T
	client *redis.Client
	script *redis.Script
}

func newTimed(t *testing.T) timed {
	server := redistest.Start(t)
	text := strings.Replace(source, "redis.call('TIME')", "{ARGV[4], ARGV[5]}", 1)
	if text == source {
		t.Fatal("the script doesn't read the time of Redis")
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Dir + "/sock"})
	t.Cleanup(func() { client.Close() })
	return timed{t, client, redis.NewScript(text)}
}

// run takes a hit at an instant, or reads.
func (x timed) run(key string, most int, span time.Duration, take int, at time.Time) (bool, limit.State) {
	x.t.Helper()
	reply, err := x.script.Run(context.Background(), x.client, []string{key}, most, span.Microseconds(), take,
		at.Unix(), at.Nanosecond()/1000).Int64Slice()
	if err != nil {
		x.t.Fatal(err)
	}
	return reply[0] == 1, limit.State{Limit: most, Remaining: int(reply[1]),
		Reset: time.Duration(reply[2]) * time.Microsecond}
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// One rule: whatever the arrivals, Redis says of a window what a server's own window says.
func TestRedisHasTheRuleOfWindow(t *testing.T) {
	x, n := newTimed(t), 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		key := fmt.Sprint(n)
		most := rapid.IntRange(1, 5).Draw(r, "most")
		w, now := limit.NewWindow(most, time.Minute), began
		for range 30 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000_000).Draw(r, "pause")) * time.Microsecond)
			if full := w.Full(now); rapid.Bool().Draw(r, "read") {
				if free, _ := x.run(key, most, time.Minute, 0, now); free == full {
					r.Fatalf("reading: free %v of a window that is full: %v", free, full)
				}
			}
			wantOK, want := w.TakeState(now)
			if ok, state := x.run(key, most, time.Minute, 1, now); ok != wantOK || state != want {
				r.Fatalf("Redis: %v, %+v; the server alone: %v, %+v", ok, state, wantOK, want)
			}
		}
	})
}

// A clock that is set back locks nobody out for longer than a span, and lets nobody in too soon.
func TestClockOfRedisSetBack(t *testing.T) {
	x := newTimed(t)
	for i := range 3 {
		x.run("k", 3, time.Minute, 1, began.Add(time.Duration(i)*10*time.Second))
	}
	back := began.Add(-time.Hour)
	for _, c := range []struct {
		after, reset time.Duration
		ok           bool
	}{
		// The hits count as 20, 10 and 0 seconds old.
		{0, 40 * time.Second, false}, {39 * time.Second, time.Second, false}, {40 * time.Second, 10 * time.Second, true},
		{49 * time.Second, time.Second, false}, {50 * time.Second, 10 * time.Second, true},
	} {
		if ok, state := x.run("k", 3, time.Minute, 1, back.Add(c.after)); ok != c.ok || state.Reset != c.reset {
			t.Errorf("%v after the clock was set back by more than an hour: %v, %+v; want %v, %v", c.after, ok, state, c.ok,
				c.reset)
		}
		if left := x.client.PTTL(context.Background(), "k").Val(); left <= 0 || left > time.Minute {
			t.Errorf("%v after the clock was set back the key expires in %v", c.after, left)
		}
	}
}

// A limit that was lowered holds at once, and the wait is true.
func TestLimitLowered(t *testing.T) {
	x := newTimed(t)
	for i := range 5 {
		x.run("k", 5, time.Minute, 1, began.Add(time.Duration(i)*time.Second))
	}
	now := began.Add(10 * time.Second)
	ok, state := x.run("k", 2, time.Minute, 1, now)
	if ok || state != (limit.State{Limit: 2, Reset: 53 * time.Second}) {
		t.Errorf("%v, %+v; want a wait until second 63, when the fourth hit leaves", ok, state)
	}
	if ok, _ := x.run("k", 2, time.Minute, 1, now.Add(state.Reset-time.Microsecond)); ok {
		t.Error("admitted too soon")
	}
	if ok, _ := x.run("k", 2, time.Minute, 1, now.Add(state.Reset)); !ok {
		t.Error("refused after the wait")
	}
}
