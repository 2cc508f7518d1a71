package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/transfer"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// elsewhere runs an embedded engine of the test's own as a ClickHouse server, and returns the flags that reach it.
func elsewhere(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	dir, ended := memory.TempDir(t), make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"engine", "run", "--data-dir", dir, "--engine-lib", clickhousetest.Library()},
			streams{strings.NewReader(""), in, io.Discard})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	said := map[string]string{}
	for lines := bufio.NewScanner(out); len(said) < 3 && lines.Scan(); {
		what, value, _ := strings.Cut(lines.Text(), ": ")
		said[what] = value
	}
	host, _ := strings.CutPrefix(said["address"], "http://")
	return []string{"--clickhouse-url", "http://" + said["user"] + "@" + host + "/runlens", "--clickhouse-password-file",
		said["password file"]}
}

// The embedded engine's store moves to a ClickHouse server with everything: what was worked out by hand is answered
// there, keys and cursors hold, and who was purged stays out. A move that was interrupted goes on.
func TestEngineMove(t *testing.T) {
	t.Parallel() // it waits more than it works
	quiet := slog.New(slog.DiscardHandler)
	run := func(want int, says string, flags []string, args ...string) {
		t.Helper()
		code, out, stderr := command(t, "", append(args, flags...)...)
		if code != want || !strings.Contains(out+stderr, says) {
			t.Fatalf("%q: %d, want %d and %q:\n%s%s", args, code, want, says, out, stderr)
		}
	}
	here := []string{"--data-dir", memory.TempDir(t), "--engine-lib", clickhousetest.Library()}
	from, err := openFilled(t, storeFlags{DataDir: here[1], EngineLib: here[3]})
	must(t, err)
	records := filepath.Join(t.TempDir(), "people.ndjson")
	people(t, records)
	run(exitDone, "", here, "ingest", records)
	run(exitDone, "", here, "purge", "--org", "acme", "--person", "ada@x.example", "--yes")
	_, key := createKey(t, here)
	revokedID, revoked := createKey(t, here)
	run(exitDone, "", here, "keys", "revoke", revokedID)
	scripts, err := conform.Scripts(os.DirFS("../../testdata/queries"))
	must(t, err)
	one := &placed{names: []string{oneCell}}
	worked := newTrial([]*clickhouse.Server{from}, one, "", quiet, streams{err: io.Discard})
	scripts, least := olaptest.Some(3, scripts...), 100
	if testing.Short() {
		least = len(scripts)
	}
	for _, script := range scripts {
		renamed := script.Rename(func(name string) string { return worked.prefix + script.Name + "-" + name })
		for _, step := range renamed.Steps {
			if step.Records != nil {
				must(t, worked.store(t.Context(), script.Name, step.Records))
			}
		}
	}
	refreshed(t, from.Conn(), here) // what moved counts twice until then
	base, _, stop := started(t, append(here, "--maintenance-share", "0")...)
	first, before := pageOf(t, base, key, ""), answersOf(t, base, key)
	there := elsewhere(t)
	to := []string{"engine", "move", "--to", there[1], "--to-password-file", there[3]}
	run(exitFailed, "other processes use", here, to...)
	run(exitUsage, "https://user@host:8443/database", here, "engine", "move", "--to", "clickhouse://u@h:9000/d")
	run(exitFailed, "knows no such cluster", there, "cells", "list", "--from-cluster", "main")

	// It was interrupted after half of a table, more or less.
	target, err := openMigrated(t.Context(), storeFlags{ClickhouseURL: there[1], ClickhousePasswordFile: there[3]}, quiet)
	must(t, err)
	defer target.Close()
	sending, err := clickhouse.NewTransfer(from, target)
	must(t, err)
	broken, sent := errors.New("broken"), 0
	interrupted := transfer.Copy{From: from.Conn(), To: target.Conn(), Logger: quiet,
		Send: func(ctx context.Context, query, insert string) error {
			if strings.HasSuffix(insert, schema.TableRuns) {
				if sent++; sent > 2 {
					return errors.Join(sending.Send(ctx, query+" LIMIT 1", insert), broken)
				}
			}
			return sending.Send(ctx, query, insert)
		}}
	if _, err := interrupted.Run(t.Context()); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	// Until it has ended, half a store is neither answered from nor stored in.
	for _, args := range [][]string{
		{"orgs", "list"}, {"ingest", records}, {"keys", "create", "--org", "acme"}, {"serve", "--data-dir", t.TempDir()},
	} {
		run(exitFailed, "has not ended, so that it lacks rows", there, args...)
	}
	// A server of before refreshes what there is.
	must(t, rollup.New(target.Conn(), quiet, 0).Refresh(t.Context()))
	// The next one does not see that somebody makes a key meanwhile, says so, and the one after it has the key.
	stop()
	madeLate := ""
	interrupted.Send = func(ctx context.Context, query, insert string) error {
		if madeLate == "" {
			_, madeLate = createKey(t, here)
		}
		return sending.Send(ctx, query, insert)
	}
	if _, err := interrupted.Run(t.Context()); !errors.Is(err, transfer.ErrBusy) {
		t.Fatal(err)
	}
	from.Close()
	// A week of usage that was copied, and is too old here by now.
	if err := target.Conn().Exec(t.Context(), "INSERT INTO usage_log (organization_id, at)"+
		" SELECT 'acme', now() - INTERVAL 60 DAY"); err != nil {
		t.Fatal(err)
	}
	// The server dies before a partition is sent again.
	code, _, stderr := command(t, "", append([]string{"engine", "move", "--to", dying(t, there[1], "DROP PARTITION"),
		"--to-password-file", there[3]}, here...)...)
	if said := stderr[strings.LastIndex(stderr, "runlens: "):]; code != exitFailed || strings.Contains(said, "limit=") ||
		!strings.Contains(said, "the same command goes on") {
		t.Errorf("%d: %s", code, stderr)
	}
	run(exitDone, "which are the same in both stores", here, to...)
	run(exitFailed, "was moved there before, to the end", here, to...)
	if n := counted(t, target.Conn(), "SELECT count() FROM usage_log WHERE at < now() - INTERVAL 30 DAY"); n > 0 {
		t.Errorf("%d rows of usage are there only", n)
	}

	base, _, _ = started(t, append(there, "--data-dir", t.TempDir(), "--maintenance-share", "0")...)
	if got := answersOf(t, base, key); got != before {
		t.Errorf("answers\n%swant\n%s", got, before)
	}
	for key, want := range map[string]int{revoked: 401, madeLate: 200} {
		if code, _ := post(t, base, key, totals); code != want {
			t.Errorf("a key gets %d, want %d", code, want)
		}
	}
	if second := pageOf(t, base, key, first.Cursor); second.AsOf != first.AsOf || len(second.Rows) != 1 ||
		second.Rows[0][0] == first.Rows[0][0] {
		t.Errorf("the next page of %+v is %+v", first, second)
	}
	run(exitDone, "equals its base tables", there, "rollup", "check")
	run(exitRejected, "", there, "ingest", records) // with everything of ada
	if got := answersOf(t, base, key); got != before {
		t.Errorf("after the person's records came again:\n%swant\n%s", got, before)
	}
	report := conformReport{}
	worked.stores, worked.url = []*clickhouse.Server{target}, base
	for _, script := range scripts {
		for i, step := range slices.Backward(script.Steps) {
			if step.Records != nil { // what was asked before them has other answers now
				script.Steps = slices.DeleteFunc(script.Steps[i+1:], conform.Step.UsesCursor)
				break
			}
		}
		must(t, worked.run(t.Context(), script, &report))
	}
	if len(report.Failed) > 0 || report.Cases < least {
		t.Errorf("after %d cases: %+v", report.Cases, report.Failed)
	}
}

// dying is the address of a ClickHouse server that ends every connection on which a statement has the words.
func dying(t *testing.T, address, words string) string {
	t.Helper()
	return gateway(t, address, func(r *http.Request) int {
		statement, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(statement), words) {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(statement))
		return 0
	})
}

// A daysPage is a page of an answer by days.
type daysPage struct {
	AsOf   string
	Cursor string
	Rows   [][]any
}

func pageOf(t *testing.T, base, key, cursor string) (p daysPage) {
	t.Helper()
	if cursor != "" {
		cursor = `,"cursor":"` + cursor + `"`
	}
	code, text := post(t, base, key, `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,`+
		`"order":[{"member":"day","direction":"asc"}],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}`+
		cursor+"}")
	if err := json.Unmarshal([]byte(text), &p); code != 200 || err != nil {
		t.Fatal(code, text)
	}
	return p
}
