package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// export writes a file of records with repeats, stale versions and no order.
func export(t *testing.T, path string, organization string, n int) {
	t.Helper()
	var lines []string
	r := rand.New(rand.NewPCG(7, uint64(n)))
	id := func(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761&0xffffffff, i) }
	for i := range n {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		for version := range 1 + i%3 {
			lines = append(
				lines,
				fmt.Sprintf(
					`{"record":"run","organization_id":"%s","run_id":"%s","agent_id":"%s","status":"%s",`+
						`"initiator_identifier":"p%d@example.com","created_at":"%s","updated_at":"2026-06-01T00:00:0%dZ"}`,
					organization, id(i), id(i%9), []string{"RUNNING", "PAUSED", "COMPLETED"}[version], i%50, at, version,
				),
			)
		}
		lines = append(
			lines,
			fmt.Sprintf(
				`{"record":"attribution","organization_id":"%s","attribution_id":"%s","run_id":"%s","agent_id":"%s",`+
					`"user_identifier":"p%d@example.com","activity_type":"initiated","run_initiation_type":"human","source":"web",`+
					`"occurred_at":"%s"}`,
				organization, id(i), id(i), id(i%9), i%50, at,
			),
		)
	}
	lines = append(lines, lines[:len(lines)/4]...)
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
}

// halved is how often something is killed: with -short half as often.
func halved(kills int) int {
	if testing.Short() {
		return (kills + 1) / 2
	}
	return kills
}

func verified(t *testing.T, flags []string, args ...string) {
	t.Helper()
	if code, out, stderr := command(t, "", append(append([]string{"verify"}, args...), flags...)...); code != 0 {
		t.Fatalf("verify ended with %d:\n%.3000s\n%.2000s", code, out, stderr)
	}
}

// Ingest commands of several writers and the engine are killed at random times; afterwards the store
// has exactly what the files have.
func TestIngestSurvivesKills(t *testing.T) {
	flags := store(t)
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "b.ndjson")}
	export(t, files[0], "acme", 30_000)
	export(t, files[1], "acme", 45_000) // shares identities with the first, as several writers do

	for kills := 0; kills < halved(8); {
		p := spawn(t, append([]string{"ingest", files[kills%2]}, flags...)...)
		if p.killWithin(900 * time.Millisecond) {
			kills++
		}
	}
	// The last runs continue while their engine is killed.
	var writers []*process
	for _, file := range files {
		writers = append(writers, spawn(t, append([]string{"ingest", "--json", file}, flags...)...))
	}
	for range halved(5) {
		killEngine(t, flags[1])
	}
	for _, p := range writers {
		<-p.ended
		if !p.ProcessState.Success() || !strings.Contains(p.out.String(), `"complete":true`) {
			t.Fatalf("an ingest failed:\n%s\n%.3000s", p.out.String(), p.err.String())
		}
	}
	verified(t, flags, files...)
}

// The worker, PostgreSQL and the engine are killed at random times while rows change; afterwards
// the store has exactly what PostgreSQL has.
func TestWorkerSurvivesKills(t *testing.T) {
	flags := store(t)
	server := postgrestest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	setUp, err := pgx.Connect(ctx, server.URL())
	must(t, err)
	if _, err := setUp.Exec(ctx, postgres.Layout); err != nil {
		t.Fatal(err)
	}
	setUp.Close(ctx)

	changing, stop := context.WithCancel(ctx)
	var changes sync.WaitGroup
	for writer := range 2 {
		changes.Go(func() { change(t, changing, server.URL(), writer) })
	}
	worker := append(
		[]string{
			"worker",
			"--source",
			server.URL(),
			"--admin-listen",
			"off",
			"--poll-interval",
			"50ms",
			"--overlap",
			"2s",
			"--reconcile-every",
			"0",
		},
		flags...)
	copying := spawn(t, worker...)
	// 7 kills of each: with those of TestIngestSurvivesKills 34.
	for range halved(7) {
		copying.killWithin(400 * time.Millisecond)
		copying = spawn(t, worker...)
		time.Sleep(time.Duration(rand.Int64N(int64(400 * time.Millisecond))))
		must(t, server.Kill())
		must(t, server.Restart(ctx))
		killEngine(t, flags[1])
	}
	stop()
	changes.Wait()
	// The worker rides out what is left of the outages, and catches up.
	for {
		select {
		case <-copying.ended:
			t.Fatalf("the worker ended:\n%.3000s", copying.err.String())
		default:
		}
		code, out, _ := command(
			t,
			"",
			append([]string{"verify", "--recheck-after", "0s", "--source", server.URL()}, flags...)...)
		if code == 0 {
			t.Log(strings.TrimSpace(out))
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("store and source still differ:\n%.3000s", out)
		}
	}
	copying.Process.Signal(syscall.SIGTERM)
	<-copying.ended
	if !copying.ProcessState.Success() {
		t.Errorf("the worker ended badly at a signal: %v\n%.2000s", copying.ProcessState, copying.err.String())
	}
}

// change inserts and updates rows until ctx is done, whatever happens to the server.
func change(t *testing.T, ctx context.Context, url string, writer int) {
	organization := fmt.Sprintf("org-%d", writer%2)
	for ctx.Err() == nil {
		conn, err := pgx.Connect(ctx, url)
		for err == nil && ctx.Err() == nil {
			_, err = conn.Exec(ctx, fmt.Sprintf(`
				INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier)
					SELECT '%[1]s', gen_random_uuid(), gen_random_uuid(), 'RUNNING', 'p' || g || '@example.com'
						FROM generate_series(1, 50) g;
				INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id,
					user_identifier, activity_type, run_initiation_type, source)
					SELECT '%[1]s', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
						'+1555010' || g, 'associated', 'human', 'web' FROM generate_series(1, 20) g;
				UPDATE runs SET status = 'COMPLETED', updated_at = clock_timestamp()
					WHERE run_id IN (SELECT run_id FROM runs WHERE organization_id = '%[1]s' AND status = 'RUNNING' ORDER BY random()
						LIMIT 30)`, organization))
		}
		if conn != nil {
			conn.Close(context.Background())
		}
	}
}

// A full disk is reported as such, loses nothing that was acknowledged, and copying goes on when there is space again.
func TestIngestOnAFullDisk(t *testing.T) {
	dir := clickhousetest.MemoryDisk(t, "24m")
	flags := storeIn(t, filepath.Join(dir, "data"))
	clickhousetest.ResizeMemoryDisk(t, dir, 1<<20)
	file := filepath.Join(t.TempDir(), "a.ndjson")
	export(t, file, "acme", 40_000)
	code, out, stderr := command(t, "", append([]string{"ingest", file}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "disk") {
		t.Fatalf("ended with %d, want 1 and a word about the disk:\n%s\n%.3000s", code, out, stderr)
	}
	clickhousetest.ResizeMemoryDisk(t, dir, 512<<20)
	if code, out, stderr := command(t, "", append([]string{"ingest", file}, flags...)...); code != 0 {
		t.Fatalf("with space again it ended with %d:\n%s\n%.3000s", code, out, stderr)
	}
	verified(t, flags, file)
}
