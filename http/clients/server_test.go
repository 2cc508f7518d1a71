// Package clients_test holds the clients of package client, which is a module of its own, against a real server.
package clients_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// folder is where the clients are.
const folder = "../client/"

// A service is a real server over a real store, with the runs of three days in January 2026.
type service struct {
	t     testing.TB
	store *clickhouse.Server
	base  string
	key   string
}

func serve(t testing.TB, ratePerMinute int) *service {
	t.Helper()
	s := serveEmpty(t, ratePerMinute)
	records := olaptest.Records{}
	for n, day := range []int{1, 1, 2, 3} {
		records.Runs = append(records.Runs, runOn(n, day, []string{"COMPLETED", "FAILED", "COMPLETED", "RUNNING"}[n]))
	}
	olaptest.Load(t, s.store.Conn(), records)
	return s
}

// serveEmpty is serve without any runs.
func serveEmpty(t testing.TB, ratePerMinute int) *service {
	t.Helper()
	s := &service{t: t, store: olaptest.OpenStore(t)}
	stored := keys.NewStore(s.store.Conn())
	s.key = putKey(t, stored, auth.ScopeAnalyticsRead)
	server, err := httpapi.New(httpapi.Config{
		Engine:        olap.NewEngine(s.store.Conn(), []byte("a secret of tests")),
		Verifier:      auth.NewVerifier(stored, limit.NewWindow(1000, time.Minute), time.Now, slog.New(slog.DiscardHandler)),
		Logger:        slog.New(slog.DiscardHandler),
		RatePerMinute: ratePerMinute, OrgConcurrency: 4, GlobalConcurrency: 16, MaxBodyBytes: 1 << 20, BodyBytes: 64 << 20,
		QueryTimeout: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(conns.Limit(listener, conns.Caps{All: 100, PerAddress: 100}, slog.New(slog.DiscardHandler)))
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = server.Shutdown(ctx) // connections that are kept alive may outlast it
		<-served
	})
	s.base = "http://" + listener.Addr().String()
	return s
}

func runOn(n, day int, status string) olaptest.Run {
	at := time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC)
	return olaptest.Run{
		Organization: "acme", ID: olaptest.ShortID(n), AgentID: olaptest.ShortID(1),
		CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: status,
	}
}

func putKey(t testing.TB, stored keys.Store, scopes ...string) string {
	t.Helper()
	text, c := auth.NewKey()
	key := schema.APIKey{KeyID: c.KeyID, SecretHash: c.Hash, OrganizationID: "acme", Scopes: scopes, CreatedAt: time.Now()}
	if err := stored.Put(context.Background(), key); err != nil {
		t.Fatal(err)
	}
	return text
}

// client is one with the service's key, whose connections end with the test. change may replace settings.
func (s *service) client(change func(*client.Config)) *client.Client {
	s.t.Helper()
	config := client.Config{URL: s.base, Key: s.key,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if change != nil {
		change(&config)
	}
	c, err := client.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A faulty proxy stands before the real server and breaks the exchanges that its faults name, counted from 0.
type faulty struct {
	URL    string
	asked  atomic.Int64
	faults map[int64]func(w http.ResponseWriter, r *http.Request)
}

func (s *service) behind(faults map[int64]func(w http.ResponseWriter, r *http.Request)) *faulty {
	s.t.Helper()
	target, err := url.Parse(s.base)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	f := &faulty{faults: faults}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := f.faults[f.asked.Add(1)-1]; fault != nil {
			fault(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go server.Serve(listener)
	s.t.Cleanup(func() { server.Close() })
	f.URL = "http://" + listener.Addr().String()
	return f
}

// status answers with a status and Retry-After, where it is not empty.
func status(code int, after string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		http.Error(w, "a proxy's page", code)
	}
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

// breakOff announces more bytes than it sends.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	w.Write([]byte(`{"queryId":`))
	hangUp(w, nil)
}
