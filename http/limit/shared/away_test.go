package shared

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/runlens/runlens/http/limit/redistest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// hang is far beyond every patience of these tests, and below what go-redis waits by itself.
const hang = 4 * time.Second

// take takes n hits and returns how many were admitted. It fails if one takes as long as a wait without a bound.
func take(t *testing.T, r *Rates, n int) (admitted int) {
	t.Helper()
	for range n {
		began := time.Now()
		if ok, _ := r.Take("key", began); ok {
			admitted++
		}
		if took := time.Since(began); took > hang {
			t.Errorf("a hit waited %v", took)
		}
	}
	return admitted
}

// alone checks that one server admits exactly 3, without Redis, and says so once.
func alone(t *testing.T, s *Store, log *logtest.Buffer, r *Rates, reason string) {
	t.Helper()
	if admitted := take(t, r, 10); admitted != 3 {
		t.Errorf("%d admitted, the server's own limit is 3", admitted)
	}
	if !s.away.Load() || strings.Count(log.String(), "away") != 1 || !strings.Contains(log.String(), reason) {
		t.Errorf("away %v, and the log is\n%swant once %q", s.away.Load(), log, reason)
	}
}

// until waits for something.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// A Redis that doesn't do what is needed, in whatever way, costs the shared limit and nothing else.
func TestRedisThatDoesNotWork(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	refusing, silence := "redis://"+closed.Addr().String(), silent.Addr().String()
	at := func(address string) func(*testing.T) string { return func(*testing.T) string { return address } }
	started := func(user string, settings ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			return "unix://" + user + filepath.Join(redistest.Start(t, settings...).Dir, "sock")
		}
	}
	for name, c := range map[string]struct {
		address func(t *testing.T) string
		reason  string
	}{
		"nothing listens":      {at(refusing), "nothing listens at its address"},
		"no socket":            {at("unix:///nowhere/sock"), "nothing listens at its address"},
		"another name":         {at("redis://redis.invalid"), ""}, // what the resolver does
		"never answers":        {at("redis://" + silence), "it doesn't answer in time"},
		"never answers, TLS":   {at("rediss://" + silence), "it doesn't answer in time"},
		"never answers, nodes": {at("redis://" + silence + "?addr=" + silence), "it doesn't answer in time"},
		"no password":          {started("", "requirepass", "hunter2"), "it requires a password"},
		"wrong password": {started(":hunter3@", "requirepass", "hunter2"),
			"it refuses the user's name or password"},
		"a user without rights": {started("u:hunter3@", "user", "u on >hunter3 +ping"),
			"the user may not do what is needed"},
		"keys of others": {started("u:hunter3@", "user", "u on >hunter3 +@all ~other:*"),
			"the user may not do what is needed"},
		"a replica": {started("", "replicaof", "127.0.0.1 1"), "it is a read-only replica"},
		"full":      {started("", "maxmemory", "1", "maxmemory-policy", "noeviction"), "its memory is full"},
		"stopped": {func(t *testing.T) string {
			server := redistest.Start(t)
			server.Pause()
			return server.URL()
		}, "it doesn't answer in time"},
		"in somebody's script": {func(t *testing.T) string {
			server := redistest.Start(t)
			busy(t, server)
			return server.URL()
		}, ""}, // no answer at first, an error later
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := c.address(t)
			log := &logtest.Buffer{}
			patience := Patience
			if c.reason != "" && c.reason != "it doesn't answer in time" {
				patience = long // it answers at once, if this machine does
			}
			s, err := Open(address, patience, slog.New(slog.NewTextHandler(log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			alone(t, s, log, s.Rates("rate", 3, time.Hour), c.reason)
			if why := s.Try(); why == "" || !strings.Contains(why, c.reason) {
				t.Errorf("Try says %q, want %q", why, c.reason)
			}
			if strings.Contains(log.String(), "hunter") {
				t.Errorf("the log has the password:\n%s", log)
			}
		})
	}
}

// busy keeps a server in a script that doesn't end, as long as the test runs.
func busy(t *testing.T, server *redistest.Server) {
	t.Helper()
	command := exec.Command("redis-cli", "-s", filepath.Join(server.Dir, "sock"), "EVAL",
		"redis.call('SET', 'other', 'x'); while true do end", "0")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	until(t, "the script runs", func() bool {
		connection, err := net.Dial("unix", filepath.Join(server.Dir, "sock"))
		if err != nil {
			return false
		}
		defer connection.Close()
		io.WriteString(connection, "PING\r\n")
		connection.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, err = connection.Read(make([]byte, 1))
		return err != nil
	})
}

// Redis goes in the middle and comes back: each server goes on with its own limit, in which its hits of before count,
// and afterwards the limit holds over all again.
func TestRedisGoesAndComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		goes, comes func(*redistest.Server)
		patience    time.Duration // waited out where Redis is stopped
	}{
		"killed":  {(*redistest.Server).Kill, (*redistest.Server).Restart, long},
		"stopped": {(*redistest.Server).Pause, (*redistest.Server).Resume, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			one, log := open(t, server.URL(), c.patience)
			two, _ := open(t, server.URL(), c.patience)
			a, b := one.Rates("rate", 4, time.Hour), two.Rates("rate", 4, time.Hour)
			if take(t, a, 2)+take(t, b, 1) != 3 {
				t.Fatal("refused before the limit")
			}
			c.goes(server)
			var group sync.WaitGroup // at once, so that many find that it went
			for i := range 20 {
				group.Go(func() {
					if ok, _ := a.Take(fmt.Sprint(i), time.Now()); !ok {
						t.Error("a first hit is refused")
					}
				})
			}
			group.Wait()
			if n := take(t, a, 5); n != 2 {
				t.Errorf("alone, a server that admitted 2 of 4 admits %d more", n)
			}
			if n := take(t, b, 1); n != 1 {
				t.Error("alone, a server that admitted 1 of 4 refuses")
			}
			if n := metric(one); n != [2]float64{0, 22} {
				t.Errorf("metrics of a Redis that is away: %v", n)
			}
			c.comes(server)
			until(t, "both are back", func() bool { return !one.away.Load() && !two.away.Load() })
			if n := metric(one); n != [2]float64{1, 22} {
				t.Errorf("metrics of a Redis that is back: %v", n)
			}
			for _, line := range []string{"Redis is away: this server applies its own limits",
				"Redis is back: limits hold over all servers"} {
				if strings.Count(log.String(), line) != 1 {
					t.Errorf("want once %q:\n%s", line, log)
				}
			}
			if take(t, a, 1) != 0 {
				t.Error("a server that admitted 4 of 4 alone admits a fifth when Redis is back")
			}
			// Another key has one window again.
			admitted := 0
			for i := range 10 {
				if ok, _ := []*Rates{a, b}[i%2].Take("another", time.Now()); ok {
					admitted++
				}
			}
			if admitted != 4 {
				t.Errorf("%d of 4 admitted after Redis came back", admitted)
			}
		})
	}
}

// A Redis that forgets everything, its scripts too, is asked on, and no server admits more than its own limit.
func TestRedisForgets(t *testing.T) {
	server := redistest.Start(t)
	s, log := open(t, server.URL(), long)
	r := s.Rates("rate", 3, time.Hour)
	take(t, r, 2)
	server.Do("FLUSHALL")
	server.Do("SCRIPT", "FLUSH")
	if n := take(t, r, 5); n != 1 {
		t.Errorf("a server that admitted 2 of 3 admits %d more", n)
	}
	if s.away.Load() || strings.Contains(log.String(), "away") {
		t.Errorf("Redis counts as away:\n%s", log)
	}
}

// Nothing is tried after the end.
func TestFollowEnds(t *testing.T) {
	s, err := Open("unix:///nowhere", Patience, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s.Follow(ctx)
}

// metric is runlens_redis_up and runlens_redis_decided_alone_total.
func metric(s *Store) (values [2]float64) {
	metrics := make(chan prometheus.Metric, 2)
	s.Collect(metrics)
	for i := range values {
		var m dto.Metric
		(<-metrics).Write(&m)
		values[i] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return values
}
