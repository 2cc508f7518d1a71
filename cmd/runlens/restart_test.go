package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// kills is how often the engine is killed under load.
	kills = 3
	// answersBetween is how many answers come between two deaths: a statement that dies twice is not bridged.
	answersBetween = 24
	// slowRestart is what a restart may take at most for the server to be able to bridge it. On a busy machine it may
	// take longer.
	slowRestart = 2500 * time.Millisecond
	// clients is how many ask at once.
	clients = 6
)

// Contract 25: the engine dies and dies again while clients ask: 0 answers other than 200 and 429.
func TestEngineDeathsAreNoErrors(t *testing.T) {
	flags := store(t)
	file := filepath.Join(t.TempDir(), "records.ndjson")
	export(t, file, "acme", 1500)
	if code, _, stderr := command(t, "", append([]string{"ingest", file}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	base, _, _ := started(t, append(flags, "--rate-limit-per-minute", "1000000", "--answer-cache-mib", "0",
		"--org-concurrency", strconv.Itoa(clients))...)
	_, key := createKey(t, flags)
	load := newLoad(base, key)
	var slowest time.Duration
	for range kills {
		load.await(t, answersBetween)
		slowest = max(slowest, restart(t, flags[1]))
	}
	load.stop()
	load.report(t, slowest)
	if slowest > slowRestart {
		t.Skipf("a restart took %v: this machine is too busy", slowest)
	}
	for status := range load.statuses {
		if status != http.StatusOK && status != http.StatusTooManyRequests {
			t.Errorf("status %d: %s", status, load.bodies[status])
		}
	}
	if load.statuses[http.StatusOK] == 0 {
		t.Error("nobody was answered")
	}
}

// restart kills the engine and returns how long nobody answers in its place.
func restart(t *testing.T, dir string) time.Duration {
	t.Helper()
	killed := enginePID(dir)
	must(t, syscall.Kill(killed, syscall.SIGKILL))
	began := time.Now()
	if !harness.Poll(t.Context(), time.Minute, 5*time.Millisecond, func() bool {
		now := enginePID(dir)
		return now != 0 && now != killed
	}) {
		t.Fatal("the engine is not started again")
	}
	return time.Since(began)
}

// A load is clients that ask one question after another.
type load struct {
	ended   chan struct{}
	clients sync.WaitGroup

	mu       sync.Mutex
	statuses map[int]int
	bodies   map[int]string  // the last body of each status
	took     []time.Duration // of all answers but 429
}

// newLoad starts clients whose every question is another one, so that no cache answers it.
func newLoad(base, key string) *load {
	l := &load{ended: make(chan struct{}), statuses: map[int]int{}, bodies: map[int]string{}}
	for client := range clients {
		l.clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.ended:
					return
				default:
				}
				status, body, took := l.question(base, key, client, n)
				l.mu.Lock()
				l.statuses[status]++
				l.bodies[status] = body
				if status != http.StatusTooManyRequests {
					l.took = append(l.took, took)
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

// question asks for one of several kinds of answers.
func (l *load) question(base, key string, client, n int) (status int, body string, took time.Duration) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n%300).Format(time.DateOnly)
	members := [][2]string{
		{`"agent_runs","metrics":["run_count"]`, `["day"]`},
		{`"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"]`, `["agent_id"]`},
		{`"agent_user_activity","metrics":["attributed_run_count"]`, `["user_identifier","day"]`},
	}[n%3]
	question := fmt.Sprintf(
		`{"model":%s,"dimensions":%s,"limit":%d,"range":{"start":%q,"end":"2027-01-01","timezone":"UTC"}}`,
		members[0], members[1], 1+(client*67+n)%400, day)
	request, err := http.NewRequest(http.MethodPost, base+"/api/v1/analytics/query", strings.NewReader(question))
	if err != nil {
		return 0, err.Error(), 0
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error(), time.Since(began)
	}
	defer response.Body.Close()
	text := make([]byte, 300)
	read, _ := response.Body.Read(text)
	return response.StatusCode, string(text[:read]), time.Since(began)
}

// await waits until so many more questions are answered.
func (l *load) await(t *testing.T, more int) {
	t.Helper()
	answers := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.took)
	}
	until := answers() + more
	if !harness.Poll(t.Context(), time.Minute, 5*time.Millisecond, func() bool { return answers() >= until }) {
		t.Fatal("the server does not answer any more")
	}
}

// stop ends the clients when their last questions are answered.
func (l *load) stop() {
	close(l.ended)
	l.clients.Wait()
	http.DefaultClient.CloseIdleConnections()
}

func (l *load) report(t *testing.T, slowest time.Duration) {
	t.Helper()
	slices.Sort(l.took)
	t.Logf("statuses %v; p50 %v, p99 %v, longest %v; slowest restart %v", l.statuses,
		l.took[len(l.took)/2], l.took[len(l.took)*99/100], l.took[len(l.took)-1], slowest)
}
