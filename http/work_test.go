package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/value"
)

// endless takes 0.1 s a row, and no processor.
const endless = "SELECT count() AS c0 FROM numbers(9000000000000000000) WHERE sleepEachRow(0.1) = 0" +
	" SETTINGS max_block_size = 1, max_threads = 1"

// statement answers every question with a statement of the test, as the engine does with its own.
func statement(conn driver.Conn, sql string) httpapi.Engine {
	return engineFunc(func(ctx context.Context, r olap.Request) (*olap.Result, error) {
		s := compile.Statement{SQL: sql, Columns: []compile.Column{{Name: "c0", Kind: value.Count}}}
		_, err := exec.Run(ctx, conn, s, r.QueryID, "a test")
		return nil, err
	})
}

// leave sends a question on a connection of its own, which the test may close.
func (s *service) leave(key, body string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", queryPath, key, len(body), body)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// endlessStatements are how many statements of the test ClickHouse executes.
func endlessStatements(t *testing.T, conn driver.Conn) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), "SELECT count() FROM system.processes WHERE startsWith(query, "+
		"'SELECT count() AS c0 FROM numbers')").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Clients that go away free their slots, and ClickHouse stops their statements.
func TestAbandonedQueriesEnd(t *testing.T) {
	const slots = 16
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	var abandoned atomic.Bool
	s := serveOn(t, store, func(c *httpapi.Config) {
		c.OrgConcurrency, c.GlobalConcurrency, c.QueryTimeout = slots, slots, time.Hour
		real, slow := c.Engine, statement(conn, endless)
		c.Engine = engineFunc(func(ctx context.Context, r olap.Request) (*olap.Result, error) {
			if abandoned.Load() {
				return real.Run(ctx, r)
			}
			return slow.Run(ctx, r)
		})
	})
	key := s.reader()
	var clients []net.Conn
	for range slots {
		clients = append(clients, s.leave(key, valid))
	}
	olaptest.Until(t, "every slot has a statement", func() bool { return endlessStatements(t, conn) == slots })
	abandoned.Store(true)
	s.post(key, valid).want(t, 429, "rate_limited", "")
	for _, c := range clients {
		c.Close()
	}
	left := time.Now()
	var freed, stopped time.Duration
	olaptest.Until(t, "the slots are free", func() bool { return s.post(key, valid).status == 200 })
	freed = time.Since(left)
	olaptest.Until(t, "no statement is left", func() bool { return endlessStatements(t, conn) == 0 })
	stopped = time.Since(left)
	t.Logf("slots were free after %v, statements had ended after %v", freed, stopped)
	olaptest.Until(t, "all are logged", func() bool {
		return strings.Count(s.log.String(), `"status":499`) == slots &&
			strings.Count(s.log.String(), `"code":"client_closed_request"`) == slots
	})
	if strings.Contains(s.log.String(), `"level":"ERROR"`) {
		t.Errorf("a client that goes away is an error in the log:\n%s", s.log)
	}
}

// A client that waits gets its answer, however long that takes, and may send the next request meanwhile.
func TestPatientClientsAreAnswered(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, func(c *httpapi.Config) {
		real, slow := c.Engine, statement(store.Conn(), "SELECT sleep(0.5) + 0 AS c0")
		c.Engine = engineFunc(func(ctx context.Context, r olap.Request) (*olap.Result, error) {
			if _, err := slow.Run(ctx, r); err != nil && ctx.Err() != nil {
				return nil, err
			}
			return real.Run(ctx, r)
		})
	})
	c := s.leave(s.reader(), valid)
	if _, err := io.WriteString(c, "GET "+catalogPath+" HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	for _, want := range []int{200, 401} {
		response, err := http.ReadResponse(answers, nil)
		if err != nil || response.StatusCode != want {
			t.Fatalf("%v, %v; want %d", response, err, want)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
	}
}

// A query that takes more than it may is told from a server that has too much to do: the first is not worth a repeat.
func TestTooExpensiveIsNotOverloaded(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	const timeout = 2 * time.Second
	for name, c := range map[string]struct {
		engine httpapi.Engine
		reason string
	}{
		"its deadline": {statement(conn, endless), "query_too_expensive"},
		"its memory": {statement(conn, "SELECT length(groupArray(number)) AS c0 FROM numbers(100000000)"+
			" SETTINGS max_memory_usage = 10000000"), "query_too_expensive"},
		"its time": {statement(conn, strings.Replace(endless, "SETTINGS", "SETTINGS max_execution_time = 0.2, ", 1)),
			"query_too_expensive"},
		"waiting": {engineFunc(func(ctx context.Context, _ olap.Request) (*olap.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), "engine"},
		"a statement that began late": {engineFunc(func(ctx context.Context, r olap.Request) (*olap.Result, error) {
			late, cancel := context.WithTimeout(ctx, timeout*4/5)
			defer cancel()
			<-late.Done()
			return statement(conn, endless).Run(ctx, r)
		}), "engine"},
		"too many queries": {engineFunc(func(context.Context, olap.Request) (*olap.Result, error) {
			return nil, failure.ErrOverloaded
		}), "engine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveOn(t, store, func(config *httpapi.Config) { config.Engine, config.QueryTimeout = c.engine, timeout })
			key := s.key("acme", auth.ScopeAnalyticsRead)
			s.get(catalogPath, key).want(t, 200, "", "") // so that nearly all of the time is the statement's
			a := s.post(key, valid)
			a.want(t, 429, "rate_limited", "")
			if got := a.header.Get("x-runlens-reason"); got != c.reason {
				t.Errorf("x-runlens-reason %q, want %q", got, c.reason)
			}
			expensive := strings.HasPrefix(a.Error.Message, "Too expensive query")
			if expensive != (c.reason == "query_too_expensive") || expensive != (a.header.Get("Retry-After") == "60") {
				t.Errorf("%q, Retry-After %s", a.Error.Message, a.header.Get("Retry-After"))
			}
			log := s.log.String()
			if !strings.Contains(log, `"limit":"`+c.reason+`"`) || strings.Contains(log, `"level":"ERROR"`) ||
				strings.Contains(log, "numbers") {
				t.Errorf("the log says\n%s", log)
			}
		})
	}
}
