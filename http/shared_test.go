package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit/redistest"
	"github.com/runlens/runlens/http/limit/shared"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
)

// shareRedis makes a server share a Redis, with these limits a minute.
func shareRedis(t testing.TB, store *clickhouse.Server, address string, rate, verifications int) func(*httpapi.Config) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	redis, err := shared.Open(address, 2*time.Second, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { redis.Follow(ctx) })
	t.Cleanup(func() {
		stop()
		following.Wait()
		redis.Close()
	})
	return func(c *httpapi.Config) {
		c.Rates = redis.Rates("rate", rate, httpapi.RateWindow)
		budget := redis.Window("verification", verifications, time.Minute)
		c.Verifier = auth.NewVerifier(keys.NewStore(store.Conn()), budget, time.Now, log)
	}
}

// statuses are how often each status is the answer to n requests for the catalog with a key, from turn to turn to
// another server and written in another way, all at once.
func statuses(servers []*service, key string, n int) map[int]int {
	var mu sync.Mutex
	counts := map[int]int{}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			s := servers[i%len(servers)]
			a := s.get(catalogPath, "", "Authorization", []string{"Bearer ", "bearer ", "BEARER  "}[i/len(servers)%3]+key)
			mu.Lock()
			defer mu.Unlock()
			counts[a.status]++
			if wait, err := strconv.Atoi(a.header.Get("Retry-After")); a.status == 429 && (err != nil || wait < 1 || wait > 60) {
				s.t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		})
	}
	group.Wait()
	return counts
}

// Three servers that share a Redis are one, as far as a key's rate and verifications go. When Redis is killed, each
// applies its own limits, and nobody gets a 500.
func TestLimitsOverThreeServers(t *testing.T) {
	redis := redistest.Start(t)
	store := olaptest.OpenStore(t)
	var servers []*service
	for range 3 {
		servers = append(servers, serveOn(t, store, shareRedis(t, store, redis.URL(), 60, 12)))
	}
	key, other, later := servers[0].reader(), servers[0].reader(), servers[0].reader()
	for _, k := range []string{key, other, later} { // nine verifications; from here on all servers know them
		for _, s := range servers {
			s.get(catalogPath, k).want(t, 200, "", "")
		}
	}
	if got := fmt.Sprint(statuses(servers, key, 61-3)); got != "map[200:57 429:1]" {
		t.Errorf("of 61 requests in a minute, after 3: %s", got)
	}
	unknown := func(s *service) answer {
		t.Helper()
		invented, _ := auth.NewKey()
		return s.get(catalogPath, invented)
	}
	verified := 0
	for i := range 12 {
		if a := unknown(servers[i%3]); a.status == 401 {
			verified++
		} else if a.status != 429 || a.header.Get("x-runlens-reason") != "verification" {
			t.Errorf("an unknown key: %d %s", a.status, a.body)
		}
	}
	if verified != 3 {
		t.Errorf("%d unknown keys were verified, with 3 verifications left", verified)
	}
	redis.Kill()
	got := statuses(servers, other, 6*60)
	if got[200] != 3*60-3 || got[429] != 6*60-got[200] {
		t.Errorf("with Redis killed, after one request at each of three servers: %v", got)
	}
	redis.Restart()
	// When all three share a window again, each says that one less is left.
	for end := time.Now().Add(25 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		left := map[string]bool{}
		for _, s := range servers {
			a := s.get(catalogPath, later)
			a.want(t, 200, "", "")
			rest, _, _ := strings.Cut(a.header.Get("RateLimit"), ";t=")
			left[rest] = true
		}
		if len(left) == 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("long after Redis is back the servers don't share the window: %v", left)
		}
	}
}

// block returns the first block of a language in deploy/README.md.
func block(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("deploy/README.md has no block of %s", language)
	}
	return text
}

// The nginx of deploy/README.md sends a key to one server, however the header is written. So its rate holds.
func TestRateBehindNginx(t *testing.T) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("no nginx on the PATH: the configuration of deploy/README.md is not tested")
	}
	dir, err := os.MkdirTemp("", "nginx-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := block(t, "nginx")
	store := olaptest.OpenStore(t)
	var first *service
	for i := range 3 {
		s := serveOn(t, store, func(c *httpapi.Config) { c.RatePerMinute = 60 })
		first = s
		documented := fmt.Sprintf("10.0.0.%d:8080", i+1)
		if !strings.Contains(text, documented) {
			t.Fatalf("the block has no %s", documented)
		}
		text = strings.Replace(text, documented, strings.TrimPrefix(s.base, "http://"), 1)
	}
	port := ports.FreeFor(t, 1)[0]
	text = strings.Replace(text, "127.0.0.1:8000", "127.0.0.1:"+port, 1)
	user := "" // of the workers; only root may choose one
	if os.Getuid() == 0 {
		user = "user root;"
	}
	var paths bytes.Buffer
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&paths, "%s_temp_path %s/%s;\n", name, dir, name)
	}
	config := filepath.Join(dir, "nginx.conf")
	whole := fmt.Sprintf("%s\nworker_processes 2;\npid %s/pid;\nevents { worker_connections 512; }\n"+
		"http {\naccess_log off;\n%s%s}\n", user, dir, paths.String(), text)
	if err := os.WriteFile(config, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-p", dir, "-c", config, "-e", filepath.Join(dir, "log")}
	if out, err := exec.Command(program, append(arguments, "-t")...).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	command := exec.Command(program, append(arguments, "-g", "daemon off;")...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Signal(os.Interrupt)
		command.Wait()
	})
	proxy := &service{t: t, base: "http://127.0.0.1:" + port, keys: first.keys, log: first.log}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(proxy.base + catalogPath)
		if err == nil {
			response.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	for range 3 {
		if got := fmt.Sprint(statuses([]*service{proxy}, proxy.reader(), 90)); got != "map[200:60 429:30]" {
			t.Errorf("of 90 requests: %s", got)
		}
	}
}
