package httpapi_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/olaptest"
)

// An engine of tests that behaves as a function says; what it would answer does not matter here.
type engineFunc func(context.Context, olap.Request) (*olap.Result, error)

func (f engineFunc) Run(ctx context.Context, r olap.Request) (*olap.Result, error) { return f(ctx, r) }

// Spec section 8: caps per organization and for the whole API, with a wording of their own.
func TestConcurrencyLimits(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c *httpapi.Config) {
		c.OrgConcurrency, c.GlobalConcurrency = 1, 2
		c.Engine = engineFunc(func(context.Context, olap.Request) (*olap.Result, error) {
			entered <- struct{}{}
			<-leave
			return nil, errors.New("enough")
		})
	})
	acme, globex, initech := s.reader(), s.key("globex", auth.ScopeAnalyticsRead), s.key("initech",
		auth.ScopeAnalyticsRead)
	done := make(chan struct{}, 2)
	hold := func(key string) {
		go func() {
			s.post(key, valid)
			done <- struct{}{}
		}()
		<-entered
	}
	refused := func(name, key string) {
		t.Helper()
		a := s.post(key, valid)
		a.want(t, 429, "rate_limited", "")
		if !strings.Contains(a.Error.Message, "Too many concurrent requests") || a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %q, Retry-After %q", name, a.Error.Message, a.header.Get("Retry-After"))
		}
	}
	hold(acme)
	refused("a second query of one organization", acme)
	hold(globex)
	refused("a third query of all", initech)
	// Grammar comes before concurrency (contract 4.18), and the catalog has no such limit.
	s.post(acme, unknownProperty).want(t, 400, "invalid_query", "nonsense")
	s.get(catalogPath, initech).want(t, 200, "", "")
	leave <- struct{}{}
	leave <- struct{}{}
	<-done
	<-done
	hold(acme) // the slots are free again
	leave <- struct{}{}
	<-done
}

// Failures answer 500 and nothing else; their causes are in the log under both ids.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		engine engineFunc
		status int
		code   string
		cause  string
	}{
		"an error": {func(context.Context, olap.Request) (*olap.Result, error) {
			return nil, errors.New("SELECT from clickhouse at /root")
		}, 500, "internal_error", "SELECT from clickhouse"},
		"a panic": {func(context.Context, olap.Request) (*olap.Result, error) { panic("SELECT") }, 500, "internal_error",
			"panic: SELECT"},
		"the deadline": {func(ctx context.Context, _ olap.Request) (*olap.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, 429, "rate_limited", "deadline exceeded"},
		"an engine that has too much to " +
			"do": {func(context.Context, olap.Request) (*olap.Result, error) { return nil, failure.ErrOverloaded }, 429,
			"rate_limited", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(config *httpapi.Config) {
				config.Engine, config.OrgConcurrency = c.engine, 1
				if name == "the deadline" {
					config.QueryTimeout = 300 * time.Millisecond
				}
			})
			key := s.reader()
			for range 3 { // each frees its slot
				a := s.post(key, valid, "x-request-id", "failing")
				a.want(t, c.status, c.code, "")
				if c.code == "internal_error" && a.Error.Message != "An internal error occurred" {
					t.Errorf("message %q", a.Error.Message)
				}
			}
			log := s.log.String()
			if !strings.Contains(log, c.cause) || !strings.Contains(log, `"request_id":"failing"`) ||
				!strings.Contains(log, `"query_id"`) {
				t.Errorf("the log says\n%s", log)
			}
		})
	}
}

// A store that is broken answers 500 without a word of its own.
func TestBrokenStore(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	key := s.reader()
	s.post(key, valid).want(t, 200, "", "")
	if err := store.Conn().Exec(context.Background(), "DROP TABLE runs SYNC"); err != nil {
		t.Fatal(err)
	}
	s.post(key, valid).want(t, 500, "internal_error", "")
}

// The log of a good request has its ids, its duration, its rows and how it was answered.
func TestRequestLog(t *testing.T) {
	s := serve(t, nil)
	a := s.post(s.reader(), valid, "x-request-id", "good")
	a.want(t, 200, "", "")
	for _, part := range []string{`"request_id":"good"`, `"status":200`, `"organization_id":"acme"`, `"key_id":`,
		`"duration_ms":`, `"rows":1`,
		`"strategy":{"reads":"base","page":"single","reason":"rows_below_threshold","attempt":1}`,
		`"query_id":"` + decode[struct{ QueryID string }](t, a.body).QueryID + `"`} {
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("the log lacks %s:\n%s", part, s.log)
		}
	}
}

// Where another request's execution gave the answer, the log says which.
func TestRequestLogNamesTheExecution(t *testing.T) {
	other := uuid.New()
	s := serve(t, func(c *httpapi.Config) {
		real := c.Engine
		c.Engine = engineFunc(func(ctx context.Context, r olap.Request) (*olap.Result, error) {
			r.QueryID = other
			return real.Run(ctx, r)
		})
	})
	s.post(s.reader(), valid).want(t, 200, "", "")
	if log := s.log.String(); !strings.Contains(log, `"execution_id":"`+other.String()+`"`) ||
		strings.Contains(log, `"query_id":"`+other.String()+`"`) {
		t.Errorf("the log says\n%s", log)
	}
}

// A shutdown lets the requests in flight end, and takes no new ones.
func TestShutdownDrains(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c *httpapi.Config) {
		c.Engine = engineFunc(func(context.Context, olap.Request) (*olap.Result, error) {
			entered <- struct{}{}
			<-leave
			return nil, errors.New("in flight")
		})
	})
	key := s.reader()
	answered := make(chan answer, 1)
	go func() { answered <- s.post(key, valid) }()
	<-entered
	closed := make(chan struct{})
	go func() {
		s.close()
		close(closed)
	}()
	for { // until nobody listens any more
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case <-closed:
		t.Error("closed with a request in flight")
	default:
	}
	leave <- struct{}{}
	(<-answered).want(t, 500, "internal_error", "")
	<-closed
}
