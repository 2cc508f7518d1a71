package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/query"
)

// Tenants get right answers, of which the figures tell, while somebody attacks.
func TestTenantsDuringASiege(t *testing.T) {
	inTurn(t)
	c := killsCommand(t, buildRunlens(t))
	c.Only, c.SiegeOf, c.SiegeFor = []string{"siege"}, []string{"api", "log"}, 2*time.Second
	var progress bytes.Buffer
	s := &soak{command: c, log: &progress, report: &report{}}
	if err := s.prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, f := range s.report.figures {
		met[f.what] = f.met
	}
	for _, what := range []string{"tenants' questions without an answer, or with another one than 200 and 429",
		"tenants' answers that differ from the oracle's", "tenants' requests that were answered with 200",
		"engines that ended without being killed", "memory of serve", "answers to attackers outside the contract"} {
		if !met[what] {
			t.Errorf("%s: %+v\n%s", what, s.report, &progress)
		}
	}
}

// The longest questions are legal, and no two have a value in common.
func TestLongestQuestionsDiffer(t *testing.T) {
	q := smallQuestion
	q.Dimensions = []string{"agent_id"}
	seen := map[string]bool{}
	for number := range 30 {
		parsed, err := query.Parse(largestBody(q, number*700))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range parsed.Filters {
			for _, value := range f.Values {
				if seen[value] {
					t.Fatalf("a value of number %d was there before", number)
				}
				seen[value] = true
			}
		}
	}
	if len(seen) != 30*maxFilters*maxValues {
		t.Errorf("%d values", len(seen))
	}
}

func TestAttackersQuestionsAreLegal(t *testing.T) {
	g := &siege{others: newAuthor(1, date("2026-11-22"))}
	for n, name := range hostileNames {
		if _, err := query.Parse(hostileQuestion(name, n).body()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	bodies := map[string]bool{}
	for n := range 16 * 30 {
		body := g.slowQuestion(n).body()
		if _, err := query.Parse(body); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		bodies[string(body)] = true
	}
	if len(bodies) != 16*30 {
		t.Errorf("%d questions differ", len(bodies))
	}
}

// The other user reports whatever it can read, and nothing of what refuses it.
func TestStrangerReportsWhatItReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	open := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer open.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	defer closed.Close()
	addressOf := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	for name, c := range map[string]struct {
		task  strangerTask
		reads bool
	}{
		"nothing":   {strangerTask{}, false},
		"no file":   {strangerTask{Paths: []string{file + "2/none"}}, false},
		"a file":    {strangerTask{Paths: []string{file}}, true},
		"a process": {strangerTask{PIDs: []int{os.Getpid()}}, true},
		"engine":    {strangerTask{Engine: addressOf(open)}, true},
		"admin":     {strangerTask{Admin: addressOf(open)}, true},
		"API":       {strangerTask{API: addressOf(open)}, true},
		"refused":   {strangerTask{Engine: addressOf(closed), Admin: addressOf(closed), API: addressOf(closed)}, false},
	} {
		task, err := json.Marshal(c.task)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := tryAsStranger(bytes.NewReader(task), &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var found strangerFinding
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (len(found.Read) > 0) != c.reads {
			t.Errorf("%s: %q", name, found.Read)
		}
	}
}

// A crowd attacks from the address that it is given.
func TestCrowdAttacksFromAnAddress(t *testing.T) {
	const local = "127.0.0.3"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}).Dial("tcp",
		listener.Addr().String()); err != nil {
		t.Skip("this system has no ", local)
	}
	from := make(chan string, 2)
	go func() {
		for range 2 {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			from <- host
			c.Close()
		}
	}()
	c := &crowd{address: listener.Addr().String(), size: 1, local: local}
	c.run(t.Context(), bodyAttack{hold: answerPatience})
	<-from // the dial above
	if host := <-from; host != local {
		t.Errorf("it came from %s", host)
	}
}

// Every engine that is followed by another one has ended.
func TestEnginesThatEndAreCounted(t *testing.T) {
	product := process.Product{DataDir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(product.DataDir, "engine"), 0o700); err != nil {
		t.Fatal(err)
	}
	var w engineWatch
	for _, published := range []string{`{"pid":1}`, `{"pid":1}`, ``, `{"pid":2}`, `{"pid":3}`, `{"pid":3}`} {
		file := filepath.Join(product.DataDir, "engine", "address.json")
		if err := os.WriteFile(file, []byte(published), 0o600); err != nil {
			t.Fatal(err)
		}
		w.note(product)
	}
	if w.ends() != 2 {
		t.Errorf("%d engines ended", w.ends())
	}
}

// A terminal shows what a command prints, so that what it obeys is found.
func TestWhatATerminalObeysIsFound(t *testing.T) {
	for printed, found := range map[string]int{`\033]0;siege\007`: 1, `\342\200\256siege`: 1, `siege`: 0} {
		g := &siege{}
		g.show(t.Context(), "printf", func(ctx context.Context) *exec.Cmd {
			return exec.CommandContext(ctx, "printf", printed)
		})
		if g.escapes.count() != found {
			t.Errorf("%s: %q", printed, g.escapes.first())
		}
	}
}

func TestControlCharactersInALogAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("{\"a\":1}\n{\"b\":\"\x1b[m\"}\n{\"c\":\"å\x7f\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if seen := readLog(file); seen.count() != 2 {
		t.Errorf("%q", seen.first())
	}
}

// A process is started with the limit of open files that it is given.
func TestFilesAreLimited(t *testing.T) {
	script := filepath.Join(t.TempDir(), "limit")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nulimit -n\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := process.Product{Binary: script, OpenFiles: 200}.Command(t.Context(), "serve").Output()
	if err != nil || strings.TrimSpace(string(out)) != "200" {
		t.Errorf("%s %v", out, err)
	}
}
