package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
)

// A query that PostgreSQL cancels, because of statement_timeout or for a person, is made again.
func TestCanceledQueries(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	holder := b.connect()
	b.exec(holder, "BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
	status, _ := b.start(nil)
	b.until("a query of the worker waits and is canceled", func() bool {
		return b.sourceCount(`SELECT count(*) FROM (SELECT pg_cancel_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'runlens' AND wait_event_type = 'Lock') AS s`) > 0
	})
	b.until("it is made again", func() bool { return status.Report().Retries > 0 })
	b.exec(holder, "COMMIT")
	b.untilEqual()
}

// A lock that lock_timeout does not wait for is no reason to end.
func TestLocksOfTheSource(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	b.do("DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET lock_timeout = 50'; END $$")
	holder := b.connect()
	b.exec(holder, "BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
	status, _ := b.start(nil)
	b.until("it tries again", func() bool { return status.Report().Retries > 1 })
	b.exec(holder, "COMMIT")
	b.untilEqual()
}

// A statement_timeout that every full comparison runs into is said in the status, the metrics and the readiness, until
// one ends.
func TestComparisonThatFails(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	// Reading everything, and nothing else, is slow.
	b.do(`CREATE TABLE trap AS SELECT true AS set;
		CREATE FUNCTION slow(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('enable_seqscan') = 'on' AND (SELECT set FROM trap) THEN PERFORM pg_sleep(1); END IF;
			RETURN $1; END $$;
		DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET statement_timeout = 2000'; END $$`)
	b.open(b.server.URL(), strings.Replace(postgres.DefaultMapping, "kind, parent_run_id, status,",
		"kind, parent_run_id, slow(status) AS status,", 1))
	var jump atomic.Int64 // of the clock of the status, in hours
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load()) * time.Hour) }
	status, stop := b.start(func(o *worker.Options) { o.ReconcileEvery, o.Status = time.Hour, worker.NewStatus(now) })
	b.until("it is said", func() bool {
		err := status.Ready()
		return err != nil && strings.Contains(err.Error(), "statement_timeout")
	})
	r := status.Report()
	if n := metrics(b, status)["reconcile_failures"]; n < 3 || r.Failures < 3 || r.Reconcile != nil ||
		!strings.Contains(r.Failure, "ALTER ROLE") {
		t.Errorf("%v failures, %+v", n, r)
	}
	jump.Store(4)
	if age := metrics(b, status)["reconcile_age_seconds"]; age < 4*3600 || age > 5*3600 {
		t.Errorf("no comparison has ended for %v s, want four hours and some seconds", age)
	}
	b.do("UPDATE trap SET set = false")
	b.until("a comparison ends", func() bool { return status.Report().Reconcile != nil })
	if r := status.Report(); r.Failures != 0 || status.Ready() != nil {
		t.Errorf("%+v, %v", r, status.Ready())
	}
	if age := metrics(b, status)["reconcile_age_seconds"]; age < 0 || age > 3600 {
		t.Errorf("a comparison ended %v s ago", age)
	}
	stop()
}

// A host that accepts a connection and then says nothing is a failure that passes, within a time.
func TestSourceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	mapping, err := postgres.ParseMapping(postgres.DefaultMapping)
	if err != nil {
		t.Fatal(err)
	}
	source, err := postgres.Open(context.Background(), "postgres://reader@"+silent.Addr().String()+"/db?sslmode=disable",
		mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := source.Check(ctx); err == nil || ctx.Err() != nil || !postgres.Retryable(err) {
		t.Errorf("%v, which must be retryable and come before the caller's patience ends: %v", err, ctx.Err())
	}
}

// A pooler that gives each transaction any connection is no obstacle, with fewer connections than the worker has.
func TestTransactionPooling(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 500)
	b.open(b.pgbouncer("transaction"), postgres.DefaultMapping)
	status, stop := b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.untilEqual()
	late := b.connect()
	b.exec(late, "BEGIN; SELECT 1")
	b.overlapped(status, 1)
	b.exec(late, "UPDATE runs SET status = 'FAILED', updated_at = now() WHERE organization_id = 'acme'; COMMIT")
	b.untilEqual()
	stop()
	b.do("UPDATE runs SET updated_at = updated_at - interval '1 day'")
	b.reconcile(nil)
	b.untilEqual()
}

// A pooler that gives each statement any connection cannot be read through. That ends the worker, which says
// what to do.
func TestStatementPooling(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.open(b.pgbouncer("statement"), postgres.DefaultMapping)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := worker.Run(ctx, b.options(nil))
	if err == nil || !strings.Contains(err.Error(), "pool_mode = transaction") {
		t.Errorf("it ended with %v", err)
	}
}

// pgbouncer starts Debian's pooler in front of the source, in a mode, and returns its URL.
func (b *bed) pgbouncer(mode string) string {
	b.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			b.Skip("no pgbouncer is installed (apt-get install pgbouncer)")
		}
	}
	source, err := url.Parse(b.server.URL())
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "runlens-pgbouncer-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	user := source.User.Username()
	if password, ok := source.User.Password(); ok {
		user += " password=" + password
	}
	port := ports.FreeFor(b.T, 1)[0]
	config := fmt.Sprintf(
		"[databases]\npooled = host=%s port=%s dbname=%s user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\n"+
			"unix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 2\n",
		source.Hostname(),
		source.Port(),
		source.Path[1:],
		user,
		port,
		mode,
	)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	args := []string{file}
	if os.Getuid() == 0 {
		args = []string{"-u", "nobody", file} // it refuses to run as root
	}
	command := exec.Command(program, args...)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		if b.Failed() {
			b.Logf("pgbouncer: %.4000s", log.String())
		}
	})
	address := fmt.Sprintf("postgres://reader@127.0.0.1:%s/pooled?sslmode=disable", port)
	b.until("pgbouncer answers", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			conn.Close(ctx)
		}
		return err == nil
	})
	return address
}
