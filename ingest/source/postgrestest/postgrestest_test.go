package postgrestest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/ingest/source/postgrestest"
)

const (
	urlVariable    = "RUNLENS_TEST_POSTGRES_URL"
	orphanVariable = "RUNLENS_TEST_POSTGRES_ORPHAN"
)

func TestCommittedRowsSurviveACrash(t *testing.T) {
	ctx := withTimeout(t)
	server := postgrestest.New(t)
	conn := connect(t, server.URL())
	do(t, conn, "CREATE TABLE t (n bigint PRIMARY KEY)")

	// One connection commits row by row, another has a transaction open that never commits.
	open, err := connect(t, server.URL()).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec(ctx, "INSERT INTO t VALUES (-1)"); err != nil {
		t.Fatal(err)
	}
	const before = 50 // rows that are certainly committed when the server is killed
	var committed int64
	warm, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := conn.Exec(ctx, "INSERT INTO t VALUES ($1)", committed); err != nil {
				return
			}
			if committed++; committed == before {
				close(warm)
			}
		}
	}()
	select {
	case <-warm:
	case <-done:
		t.Fatal("the rows were not inserted")
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if _, err := pgx.Connect(ctx, server.URL()); err == nil {
		t.Error("the killed server answers")
	}

	url, started := server.URL(), time.Now()
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("recovered %d rows in %v", committed, time.Since(started).Round(time.Millisecond))
	if server.URL() != url {
		t.Errorf("the address changed from %s to %s", url, server.URL())
	}
	conn = connect(t, url)
	if n := number(t, conn, fmt.Sprintf("SELECT count(*) FROM t WHERE n BETWEEN 0 AND %d", committed-1)); n != committed {
		t.Errorf("%d of %d committed rows are there", n, committed)
	}
	// The row in flight may have been committed without an answer.
	if n := number(t, conn, fmt.Sprintf("SELECT count(*) FROM t WHERE n NOT BETWEEN 0 AND %d", committed)); n != 0 {
		t.Errorf("%d rows are there that were never committed", n)
	}
}

func TestSettings(t *testing.T) {
	if os.Getenv(urlVariable) != "" {
		t.Skip("another server has settings of its own")
	}
	server := postgrestest.New(t)
	conn := connect(t, server.URL())
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "TimeZone": "UTC",
		"shared_buffers": "32MB", "max_connections": "50", "listen_addresses": "127.0.0.1", "server_encoding": "UTF8",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
	const sorts = "SELECT max(n) FROM (SELECT n FROM generate_series(1, 9000) n ORDER BY -n) s"
	if _, err := conn.Exec(t.Context(), "SET work_mem = '64kB'; "+sorts); err != nil {
		t.Fatal(err)
	}
	spilled, err := server.Spilled()
	if err != nil || len(spilled) == 0 || !strings.Contains(spilled[0], sorts) {
		t.Errorf("logged as sorted on disk: %q (%v)", spilled, err)
	}
}

// A restart without a crash informs the clients.
func TestRestartOfARunningServer(t *testing.T) {
	ctx := withTimeout(t)
	server := postgrestest.New(t)
	conn := connect(t, server.URL())
	do(t, conn, "CREATE TABLE t AS SELECT 1 AS n")
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(ctx, "SELECT 1")
	if refused := new(pgconn.PgError); !errors.As(err, &refused) || refused.Code != "57P01" {
		t.Errorf("the client of before reads %v, want 57P01", err)
	}
	if n := number(t, connect(t, server.URL()), "SELECT n FROM t"); n != 1 {
		t.Errorf("n is %d", n)
	}
}

// A restart needs the port of before, and waits for whoever took it.
func TestRestartWaitsForItsPort(t *testing.T) {
	ctx := withTimeout(t)
	server := postgrestest.New(t)
	conn := connect(t, server.URL())
	do(t, conn, "CREATE TABLE t AS SELECT 1 AS n")
	address := fmt.Sprintf("%s:%d", conn.Config().Host, conn.Config().Port)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart(ctx) }()
	taken.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	for range 20 { // Restart reaches the wrong server so often, and as a rule starts its own in vain meanwhile
		client, err := taken.Accept()
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	taken.Close()
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if n := number(t, connect(t, server.URL()), "SELECT n FROM t"); n != 1 {
		t.Errorf("n is %d", n)
	}
}

// A server named by its URL gives every test a database, and is never killed.
func TestServerOfAURL(t *testing.T) {
	ctx := withTimeout(t)
	server, err := postgrestest.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	t.Setenv(urlVariable, server.URL())
	outer := connect(t, server.URL())
	databases := number(t, outer, "SELECT count(*) FROM pg_database")
	var skipped bool
	t.Run("kill", func(t *testing.T) {
		named := postgrestest.New(t)
		do(t, connect(t, named.URL()), "CREATE TABLE t AS SELECT 1 AS n")
		if n := number(t, outer, "SELECT count(*) FROM pg_tables WHERE tablename = 't'"); n != 0 {
			t.Error("the table is in the named database")
		}
		defer func() { skipped = t.Skipped() }()
		t.Error(named.Kill())
	})
	if !skipped {
		t.Error("the test was not skipped")
	}
	if n := number(t, outer, "SELECT count(*) FROM pg_database"); n != databases {
		t.Errorf("there are %d databases, before %d", n, databases)
	}
}

// The server of a test binary that is killed ends too, and removes its data.
func TestNoOrphan(t *testing.T) {
	if os.Getenv(orphanVariable) != "" {
		server, err := postgrestest.Start(withTimeout(t))
		if err != nil {
			t.Fatal(err)
		}
		var data string
		if err := connect(t, server.URL()).QueryRow(t.Context(), "SHOW data_directory").Scan(&data); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nstarted %s %s\n", server.URL(), data)
		select {} // until it is killed
	}
	ctx := withTimeout(t)
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestNoOrphan$")
	command.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var url, data string
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "started" {
			url, data = fields[1], fields[2]
		}
	}
	command.Process.Kill()
	command.Wait()
	if url == "" {
		t.Fatal("the other test binary started no server")
	}
	for {
		_, gone := os.Stat(data)
		conn, err := pgx.Connect(ctx, url)
		if err != nil && os.IsNotExist(gone) {
			return
		}
		if err == nil {
			conn.Close(ctx)
		}
		if ctx.Err() != nil {
			t.Fatalf("still there: connect says %v, the directory %v", err, gone)
		}
		time.Sleep(10 * time.Millisecond) // between two polls
	}
}

func withTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func do(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, conn *pgx.Conn, sql string) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
