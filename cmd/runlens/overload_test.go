package main

import (
	"context"
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

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
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

// Two addresses want all the places, with half a request on every connection, and open one again when it is closed.
// Another address has every request answered, those on a connection that it keeps among them.
func TestBusyAddressesStarveNobody(t *testing.T) {
	flags := store(t)
	_, key := createKey(t, flags)
	base, _, _ := started(t, append(flags, "--max-connections", "64", "--max-connections-per-address", "32",
		"--rate-limit-per-minute", "100000")...)
	ctx, stop := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	holding := make(chan struct{}, 100)
	for i := range 100 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%2))}}
		attackers.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				conn, err := from.DialContext(ctx, "tcp", strings.TrimPrefix(base, "http://"))
				if err != nil {
					continue
				}
				closed := context.AfterFunc(ctx, func() { conn.Close() })
				io.WriteString(conn, "POST /api/v1/analytics/query HTTP/1.1\r\nHost: x\r\n")
				if first {
					holding <- struct{}{}
				}
				io.Copy(io.Discard, conn)
				closed()
				conn.Close()
			}
		})
	}
	for range cap(holding) {
		<-holding
	}
	kept := &http.Client{Transport: &http.Transport{}}
	defer kept.CloseIdleConnections()
	failures := 0
	for i := range 100 {
		request, err := http.NewRequest(http.MethodGet, base+"/api/v1/analytics/catalog", nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		client := http.DefaultClient
		if request.Close = i%2 == 0; !request.Close {
			client = kept
		}
		response, err := client.Do(request)
		if err != nil {
			failures++
			t.Log(err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("the API answers %d", response.StatusCode)
		}
	}
	if failures > 0 {
		t.Errorf("%d of 100 requests had no answer", failures)
	}
}

// A server with few descriptors, and a thousand idle connections of strangers to each of its addresses, answers an
// honest one on both, and lives on.
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
	for _, full := range []string{admin, address} {
		for range 1000 {
			conn, err := net.Dial("tcp", full)
			must(t, err)
			defer conn.Close()
		}
		if status, body := get(t, "http://"+address+"/api/v1/analytics/catalog", key); status != 200 {
			t.Errorf("the API answers %d when %s is full: %s", status, full, body)
		}
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
	p.Process.Kill()
	<-p.ended
	if log := p.err.String(); strings.Contains(log, "too many open files") {
		t.Errorf("the addresses take descriptors from each other: %s", log)
	}
}

// freeAddress is an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + ports.FreeFor(t, 1)[0]
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
