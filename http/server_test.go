package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
	"github.com/runlens/runlens/schema"
)

const (
	catalogPath = "/api/v1/analytics/catalog"
	queryPath   = "/api/v1/analytics/query"
	recordsPath = "/api/ingest/v1/records"
	valid       = `{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01","end":"2026-01-31",` +
		`"timezone":"UTC"}}`
)

// quiet tries nothing again.
var quiet = write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: time.Nanosecond}

// A service is a server on a real socket over a real store.
type service struct {
	t     *testing.T
	base  string
	keys  keys.Store
	log   *logtest.Buffer
	close func()
}

// serve starts a server over an empty store; change may replace settings.
func serve(t *testing.T, change func(*httpapi.Config)) *service {
	t.Helper()
	return serveOn(t, olaptest.OpenStore(t), change)
}

func serveOn(t *testing.T, store *clickhouse.Server, change func(*httpapi.Config)) *service {
	t.Helper()
	s := &service{t: t, keys: keys.NewStore(store.Conn()), log: &logtest.Buffer{}}
	config := httpapi.Config{
		Engine:        olap.NewEngine(store.Conn(), []byte("a secret of tests")),
		Verifier:      auth.NewVerifier(s.keys, limit.NewWindow(1000, time.Minute), time.Now, slog.New(slog.DiscardHandler)),
		Logger:        slog.New(slog.NewJSONHandler(s.log, nil)),
		RatePerMinute: 1000, OrgConcurrency: 4, GlobalConcurrency: 16, MaxBodyBytes: 1 << 20, BodyBytes: 64 << 20,
		QueryTimeout: 30 * time.Second,
		Push: &httpapi.PushConfig{
			Pusher: push.NewLane(write.NewWriter(store.Conn(), quiet), push.NewMetrics(), quiet.Logger),
			Rates:  limit.NewKeyed(10_000, time.Minute), Memory: limit.NewShares(64<<20, 48<<20),
		},
	}
	if change != nil {
		change(&config)
	}
	server, err := httpapi.New(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.base = "http://" + listener.Addr().String()
	s.close = answering(t, server, listener)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.close()
		for _, secret := range []string{"rl_", "@example"} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("the log contains %q:\n%s", secret, s.log)
			}
		}
	})
	return s
}

// answering has a server answer on a listener until stop, which may be called more than once.
func answering(t *testing.T, server *httpapi.Server, on net.Listener) (stop func()) {
	t.Helper()
	served := make(chan error, 1)
	limited := conns.Limit(on, conns.Caps{All: 4096, PerAddress: 4096}, server.Logger)
	go func() { served <- server.Serve(limited) }()
	return sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// key stores a new key of an organization.
func (s *service) key(organization string, scopes ...string) string {
	s.t.Helper()
	text, c := auth.NewKey()
	key := schema.APIKey{
		KeyID:          c.KeyID,
		SecretHash:     c.Hash,
		OrganizationID: schema.OrganizationID(organization),
		Scopes:         scopes,
		CreatedAt:      time.Now(),
	}
	if err := s.keys.Put(context.Background(), key); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// reader is a key that may do everything.
func (s *service) reader() string { return s.key("acme", auth.ScopeAnalyticsRead) }

// An answer is a response as a client reads it.
type answer struct {
	status int
	header http.Header
	body   []byte
	Error  struct {
		Code, Message, Param string
		RequestID            string `json:"request_id"`
	}
}

// post sends a query with a key, and further headers as name, value pairs. An empty value takes a header away.
func (s *service) post(key, body string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodPost, s.base+queryPath, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
		} else {
			request.Header.Add(headers[i], headers[i+1])
		}
	}
	return s.send(request)
}

func (s *service) get(path, key string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return s.send(request)
}

// send sends a request and checks what every answer must be.
func (s *service) send(request *http.Request) answer {
	s.t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		s.t.Fatal(err)
	}
	s.check(request, response, &a)
	return a
}

// refusals are the codes of spec section 7 and contract 4.14, with how their messages begin.
var refusals = map[string]struct {
	status  int
	message string
}{
	"invalid_query":      {400, "Invalid analytics query."},
	"unknown_member":     {400, "Unknown analytics member."},
	"range_too_large":    {400, "Analytics date range is too large."},
	"invalid_cursor":     {400, "Invalid analytics cursor."},
	"unauthorized":       {401, "Invalid API key"},
	"insufficient_scope": {403, "API key does not have the required scope"},
	"restricted_key":     {403, "API key does not permit this query"},
	"not_found":          {404, "Not found"},
	"method_not_allowed": {405, "Method not allowed"},
	"rate_limited":       {429, "Too "},
	"invalid_body":       {400, "Invalid body of records."},
	"body_too_large":     {413, "The body of records is too large."},
	"no_valid_record":    {422, "No line is a valid record."},
	"internal_error":     {500, "An internal error occurred"},
}

// check compares an answer with the description and the rules of spec 5.4 and section 7.
func (s *service) check(request *http.Request, response *http.Response, a *answer) {
	s.t.Helper()
	for _, word := range []string{"SELECT", "clickhouse", "ClickHouse", "/root", "goroutine", ".go:", "organization_id",
		"DB::"} {
		named := strings.HasPrefix(request.URL.Path, "/docs") ||
			word == "organization_id" && (request.URL.Path == recordsPath || request.URL.Path == "/ingest.yaml")
		if bytes.Contains(a.body, []byte(word)) && !named {
			s.t.Errorf("%s %s: the answer contains %s:\n%s", request.Method, request.URL.Path, word, a.body)
		}
	}
	id := a.header.Get("x-request-id")
	if id == "" {
		s.t.Errorf("%s %s: no x-request-id", request.Method, request.URL.Path)
	}
	if a.header.Get("Access-Control-Allow-Origin") != "" {
		s.t.Error("a CORS header (spec section 1)")
	}
	if a.status >= 400 && request.Method != http.MethodHead {
		var envelope struct {
			Error json.RawMessage
		}
		if err := json.Unmarshal(a.body, &envelope); err != nil || json.Unmarshal(envelope.Error, &a.Error) != nil ||
			a.Error.Code == "" {
			s.t.Fatalf("%d without an envelope: %s", a.status, a.body)
		}
		meaning, known := refusals[a.Error.Code]
		if !known || meaning.status != a.status || !strings.HasPrefix(a.Error.Message, meaning.message) {
			s.t.Errorf("%s goes with %d and %q, got %d and %q",
				a.Error.Code, meaning.status, meaning.message, a.status, a.Error.Message)
		}
		if got, want := a.header.Get("Link"), "</docs/errors#"+a.Error.Code+`>; rel="help"`; got != want {
			s.t.Errorf("%s has the link %q, want %q", a.Error.Code, got, want)
		}
		if a.Error.RequestID != id {
			s.t.Errorf("request_id %q, x-request-id %q", a.Error.RequestID, id)
		}
	}
	validate(s.t, request, response, a.body)
}

// want checks status, code and param.
func (a answer) want(t *testing.T, status int, code, param string) {
	t.Helper()
	if a.status != status || a.Error.Code != code || a.Error.Param != param {
		t.Errorf("got %d %s %q, want %d %s %q: %s", a.status, a.Error.Code, a.Error.Param, status, code, param, a.body)
	}
}

// decode reads an answer's body.
func decode[T any](t *testing.T, body []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return value
}
