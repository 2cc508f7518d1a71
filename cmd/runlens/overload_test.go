package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Contract 4.21: caps far above what the store takes are lowered, and refused requests are told when to come back.
func TestOverloadIsNoFault(t *testing.T) {
	flags := store(t)
	base, _, _ := started(
		t,
		append(flags, "--org-concurrency", "1000", "--global-concurrency", "1000", "--rate-limit-per-minute", "100000")...)
	_, key := createKey(t, flags)
	var clients sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range 600 { // each is another query
		clients.Go(func() {
			day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i).Format(time.DateOnly)
			body := fmt.Sprintf(
				`{"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],
				"dimensions":["agent_id","day"],"range":{"start":%q,"end":%q,"timezone":"Europe/Stockholm"}}`,
				day,
				day,
			)
			request, err := http.NewRequest(http.MethodPost, base+"/api/v1/analytics/query", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+key)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Error(err)
			}
			if response.StatusCode == 429 {
				if wait, err := strconv.Atoi(response.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
					t.Errorf("Retry-After %q", response.Header.Get("Retry-After"))
				}
			} else if response.StatusCode != 200 {
				t.Errorf("%d: %s", response.StatusCode, text)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[response.StatusCode]++
		})
	}
	clients.Wait()
	http.DefaultClient.CloseIdleConnections()
	if statuses[200] == 0 {
		t.Errorf("nobody was answered: %v", statuses)
	}
	t.Logf("statuses: %v", statuses)
}

// A server with few descriptors and a thousand idle connections of strangers answers an honest one, on its admin
// address too, and lives on.
func TestIdleConnectionsTakeNothingAway(t *testing.T) {
	flags := store(t)
	_, key := createKey(t, flags)
	ready, admin := filepath.Join(t.TempDir(), "ready"), freeAddress(t)
	arguments := append(
		[]string{"-c", `ulimit -n 300; exec "$0" "$@"`, os.Args[0], "serve", "--listen", "127.0.0.1:0", "--ready-file", ready,
			"--admin-listen", admin, "--maintenance-share", "0"},
		flags...)
	p := spawnCommand(t, nil, "/bin/sh", arguments...)
	address := waitForFile(t, p, ready)
	for range 1000 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if status, body := get(t, "http://"+address+"/api/v1/analytics/catalog", key); status != 200 {
		t.Errorf("the API answers %d: %s", status, body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if status, body := get(t, "http://"+admin+path, ""); status != 200 {
			t.Errorf("%s answers %d: %s", path, status, body)
		}
	}
	select {
	case <-p.ended:
		t.Errorf("the server ended: %s", p.err.String())
	default:
	}
}

// freeAddress is an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// waitForFile returns what a process writes to a file.
func waitForFile(t *testing.T, p *process, path string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if content, err := os.ReadFile(path); err == nil {
			return string(content)
		}
		select {
		case <-p.ended:
			t.Fatalf("the process ended: %s", p.err.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("there is no %s: %s", path, p.err.String())
	return ""
}
