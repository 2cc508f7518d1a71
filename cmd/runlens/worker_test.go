package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A database with the tables that `worker layout` prints, and n runs.
func operational(t *testing.T, n int) (url string, conn *pgx.Conn) {
	t.Helper()
	url = postgrestest.New(t).URL()
	conn, err := pgx.Connect(context.Background(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	code, layout, stderr := command(t, "", "worker", "layout")
	if code != exitDone {
		t.Fatal(stderr)
	}
	execute(t, conn, layout)
	execute(t, conn, fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status)
		SELECT 'acme', gen_random_uuid(), gen_random_uuid(), 'RUNNING' FROM generate_series(1, %d)`, n))
	return url, conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// working runs a worker until stop is called or the test ends. Its admin address answers a moment later.
func working(t *testing.T, url string, flags ...string) (address string, stop func()) {
	t.Helper()
	address = freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	var out, log logtest.Buffer
	ended := make(chan int, 1)
	args := append(
		[]string{"worker", "--source", url, "--admin-listen", address, "--poll-interval", "200ms", "--reconcile-every", "0"},
		flags...)
	go func() { ended <- run(ctx, args, streams{strings.NewReader(""), &out, &log}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != exitDone {
			t.Errorf("the worker ended with %d: %s", code, log.String())
		}
		if strings.Contains(log.String(), `"error":null`) {
			t.Errorf("the worker says that nothing failed: %s", log.String())
		}
	})
	t.Cleanup(stop)
	return address, stop
}

// copied runs a worker until it has caught up, and returns its status as JSON and as text.
func copied(t *testing.T, url string, flags ...string) (report worker.Report, text string) {
	t.Helper()
	address, stop := working(t, url, flags...)
	defer stop()
	caughtUp := func() bool {
		code, out, _ := command(t, "", "worker", "status", "--json", "--admin-listen", address)
		if code != exitDone {
			return false
		}
		report = worker.Report{}
		must(t, json.Unmarshal([]byte(out), &report))
		for _, k := range report.Kinds {
			if !k.CaughtUp {
				return false
			}
		}
		return true
	}
	if !harness.Poll(t.Context(), 2*time.Minute, 100*time.Millisecond, caughtUp) {
		t.Fatal("the worker does not catch up")
	}
	_, text, _ = command(t, "", "worker", "status", "--admin-listen", address)
	return report, text
}

// The status shows what is certain and where the checkpoint is; without that, one kind is copied again.
// Each batch that brings something is a trace.
func TestWorkerReset(t *testing.T) {
	received := receiving(t)
	flags := store(t)
	url, conn := operational(t, 20)
	execute(t, conn, "ALTER TABLE runs DISABLE TRIGGER USER; UPDATE runs SET updated_at = '2026-01-01'")
	report, text := copied(t, url, flags...)
	if k := report.Kinds[normalize.KindRun]; k.Stored != 20 || k.CertainUntil == nil {
		t.Errorf("%+v", k)
	}
	for _, says := range []string{"certain until", "checkpoint of run: 20", "checkpoint of agent: none yet", "mapping "} {
		if !strings.Contains(text, says) {
			t.Errorf("the status does not say %q:\n%s", says, text)
		}
	}
	if report, _ = copied(t, url, flags...); report.Kinds[normalize.KindRun].Stored != 0 {
		t.Errorf("with a checkpoint: %+v", report.Kinds[normalize.KindRun])
	}
	reset := append([]string{"worker", "reset", "run", "--source", url}, flags...)
	if code, out, stderr := command(t, "", reset...); code != exitDone || !strings.Contains(out, "cleared") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	if code, out, _ := command(t, "", reset...); code != exitDone || !strings.Contains(out, "there was none") {
		t.Errorf("%d %s", code, out)
	}
	if report, _ = copied(t, url, flags...); report.Kinds[normalize.KindRun].Stored != 20 {
		t.Errorf("after the reset: %+v", report.Kinds[normalize.KindRun])
	}
	const batch = "worker batch run 20\n  insert into runs\n"
	if got := received.tree(nil, "runlens.kind", "runlens.records"); got != batch+batch {
		t.Errorf("traces:\n%s", got)
	}
	if code, _, _ := command(t, "", "worker", "reset", "runs", "--source", url); code != exitUsage {
		t.Errorf("an unknown kind: %d", code)
	}
}

// Records of the source that break a rule are reported, and the exit code says that not everything was compared.
func TestVerifyTellsRejects(t *testing.T) {
	flags := store(t)
	url, conn := operational(t, 20)
	execute(
		t, conn,
		"INSERT INTO runs (organization_id, run_id, agent_id, status) VALUES ('acme', gen_random_uuid(), "+
			"gen_random_uuid(), 'STATUS_OF_TOMORROW')",
	)
	copied(t, url, flags...)
	verify := append([]string{"verify", "--source", url, "--recheck-after", "0s", "--ids", "1"}, flags...)
	if code, out, stderr := command(t, "", verify...); code != exitRejected ||
		!strings.Contains(out, "1 records of the source that BREAK A RULE") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	execute(
		t, conn,
		"INSERT INTO runs (organization_id, run_id, agent_id, status) SELECT 'acme', gen_random_uuid(), "+
			"gen_random_uuid(), 'FAILED' FROM generate_series(1, 3)",
	)
	if code, out, stderr := command(t, "", verify...); code != exitFailed || strings.Count(out, ", …") != 1 {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	execute(t, conn, "DELETE FROM runs WHERE status IN ('FAILED', 'STATUS_OF_TOMORROW')")
	if code, out, stderr := command(t, "", verify...); code != exitDone {
		t.Errorf("%d %s %s", code, out, stderr)
	}
}

// The database itself sets updated_at, at every insert and update, later by a millisecond at least each time, and
// polling has its indexes.
func TestLayout(t *testing.T) {
	_, conn := operational(t, 1)
	execute(
		t,
		conn,
		`INSERT INTO agents (organization_id, agent_id, name, updated_at)
			VALUES ('acme', gen_random_uuid(), 'A', '2020-01-01');
		INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id,
			user_identifier, activity_type, run_initiation_type, source, updated_at)
			VALUES ('acme', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
				'a@b.example', 'initiated', 'human', 'web', '2020-01-01')`,
	)
	updatedAt := func(table string) (at time.Time) {
		t.Helper()
		must(t, conn.QueryRow(context.Background(), "SELECT updated_at FROM "+table).Scan(&at))
		return at
	}
	for _, table := range []string{"agents", "runs", "attributions"} {
		at := updatedAt(table)
		if at.Year() == 2020 {
			t.Errorf("an insert sets the updated_at of %s to %v", table, at)
		}
		for _, change := range []string{"organization_id = 'globex'", "updated_at = '2020-01-01'",
			"organization_id = organization_id"} {
			execute(t, conn, "UPDATE "+table+" SET "+change)
			if next := updatedAt(table); next.Sub(at) < time.Millisecond {
				t.Errorf("UPDATE %s SET %s moves updated_at by %v", table, change, next.Sub(at))
			} else {
				at = next
			}
		}
		var definition string
		if err := conn.QueryRow(context.Background(), "SELECT indexdef FROM pg_indexes WHERE indexname = $1",
			table+"_changes").Scan(&definition); err != nil ||
			!strings.HasSuffix(definition, "(updated_at, "+strings.TrimSuffix(table, "s")+"_id)") {
			t.Errorf("%s, %v", definition, err)
		}
	}
}
