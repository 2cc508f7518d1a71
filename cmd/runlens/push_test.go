package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Files of every text format get to a server from elsewhere, with a summary and rejects like those of ingest; rejects
// that are fixed can be pushed as they are. Of more rejects than an answer names, all are kept.
func TestPush(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags, "--scopes", "ingest:write")
	t.Setenv("RUNLENS_API_KEY", key)
	rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
	gz, _ := packed(t, agentsNDJSON)
	bad := strings.Replace(runsCSV, "COMPLETED", "ENDED", 1)
	other := strings.ReplaceAll(agentsNDJSON, "acme", "globex")
	for _, c := range []struct {
		stdin string
		args  []string
		want  ingestSummary
		code  int
		says  []string // of the rejects
	}{
		{"", []string{fileOf(t, "a.ndjson.gz", gz)}, ingestSummary{Read: 1, Stored: stored{Agents: 1}}, exitDone, nil},
		{runsCSV, []string{"--record", "run", "--format", "csv", "-"}, ingestSummary{Read: 2, Stored: stored{Runs: 2}},
			exitDone, nil},
		{agentsNDJSON + other + "{\n", []string{"-"}, ingestSummary{Read: 3, Stored: stored{Agents: 1}, Rejected: 2},
			exitRejected, []string{`"line":3,"field":""`, `"line":2,"field":"organization_id"`, `"organization_id":"globex"`}},
		{bad, []string{"--record", "run", "--format", "csv", "-"},
			ingestSummary{Read: 2, Stored: stored{Runs: 1}, Rejected: 1}, exitRejected, []string{`"line":3,"field":"status"`}},
		{strings.Repeat(other, 2500) + agentsNDJSON, []string{"-"},
			ingestSummary{Read: 2501, Stored: stored{Agents: 1}, Rejected: 2500}, exitRejected, []string{`"line":2500,`}},
	} {
		code, out, stderr := command(t, c.stdin, append([]string{"push", "--url", base, "--json", "--rejects", rejects},
			c.args...)...)
		var got ingestSummary
		if err := json.Unmarshal([]byte(out), &got); code != c.code || err != nil {
			t.Fatalf("%v ended with %d: %s %s", c.args, code, out, stderr)
		}
		got.Seconds, got.PerSecond = 0, 0
		if c.want.Complete = true; got != c.want {
			t.Errorf("%v: %+v, want %+v", c.args, got, c.want)
		}
		content, err := os.ReadFile(rejects)
		if err != nil || strings.Count(string(content), "\n") != int(c.want.Rejected) {
			t.Errorf("%v: %d rejects in the file, %v", c.args, strings.Count(string(content), "\n"), err)
		}
		for _, says := range c.says {
			if !strings.Contains(string(content), says) {
				t.Errorf("%v: the rejects lack %s:\n%.1000s", c.args, says, content)
			}
		}
		if c.says != nil && strings.Contains(c.says[0], "status") {
			fixed := strings.Replace(string(content), "ENDED", "COMPLETED", 1)
			if code, out, stderr := command(t, fixed, "push", "--url", base, "-"); code != exitDone {
				t.Errorf("the fixed rejects ended with %d: %s %s", code, out, stderr)
			}
		}
	}
	verified(t, flags, "--record", "run", fileOf(t, "runs.csv", []byte(runsCSV)),
		fileOf(t, "a.ndjson", []byte(agentsNDJSON)))
	t.Run("spans", func(t *testing.T) { pushSpans(t, base) })
}

// Who pushes waits for a server that is busy or fails, and sends what was cut off again. What can't succeed ends at
// once.
func TestPushIsRepeated(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags, "--scopes", "ingest:write")
	_, reader := createKey(t, flags)
	t.Setenv("RUNLENS_API_KEY", key)
	target, err := url.Parse(base)
	must(t, err)
	var requests atomic.Int32
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3: // stored, and the answer is lost
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	defer proxy.Close()
	code, out, stderr := command(t, agentsNDJSON, "push", "--url", proxy.URL, "-")
	if code != exitDone || !strings.Contains(out, "read 1, stored: agents 1, runs 0, attributions 0, rejected 0") ||
		requests.Load() != 4 {
		t.Errorf("ended with %d after %d requests: %s %s", code, requests.Load(), out, stderr)
	}
	t.Setenv("RUNLENS_API_KEY", reader)
	code, out, stderr = command(t, agentsNDJSON, "push", "--url", base, "--json", "-")
	if code != exitFailed || !strings.Contains(stderr, "insufficient_scope") ||
		!strings.Contains(out, `"complete":false`) {
		t.Errorf("a key that may not push: %d %s %s", code, out, stderr)
	}
	if code, _, stderr := command(t, agentsNDJSON, "push", "--url", "127.0.0.1:1", "-"); code != exitFailed ||
		!strings.Contains(stderr, "refused") || strings.Contains(stderr, "waiting") {
		t.Errorf("no server: %d %s", code, stderr)
	}
}
