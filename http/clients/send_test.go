package clients_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/keys"
)

var exampleQuery = client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january}

func TestRefusalsAreValues(t *testing.T) {
	s := serve(t, 1000)
	bare := putKey(t, keys.NewStore(s.store.Conn()))
	good := client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january}
	for name, c := range map[string]struct {
		key         string
		change      func(*client.Query)
		status      int
		code, param string
	}{
		"member": {s.key, func(q *client.Query) { q.Metrics = []string{"run_cout"} }, 400, client.CodeUnknownMember,
			"run_cout"},
		"range": {s.key, func(q *client.Query) { q.Range.Start = "2025-01-01" }, 400, client.CodeRangeTooLarge, "range"},
		"zone": {s.key, func(q *client.Query) { q.Range.Timezone = "US/Eastern" }, 400, client.CodeInvalidQuery,
			"range.timezone"},
		"cursor": {s.key, func(q *client.Query) { q.Dimensions, q.Cursor = []string{"day"}, "x" }, 400,
			client.CodeInvalidCursor, "cursor"},
		"scope":   {bare, func(*client.Query) {}, 403, client.CodeInsufficientScope, ""},
		"no key":  {"rl_nobody", func(*client.Query) {}, 401, client.CodeUnauthorized, ""},
		"nothing": {s.key, func(q *client.Query) { q.Metrics = nil }, 400, client.CodeInvalidQuery, "metrics"},
	} {
		q := good
		c.change(&q)
		_, err := s.client(func(config *client.Config) { config.Key = c.key }).Query(t.Context(), q)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != c.status || refused.Code != c.code || refused.Param != c.param ||
			refused.RequestID == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The rate of the real server: the client waits as long as it says, within its patience and the context.
func TestRetryAfterIsObeyed(t *testing.T) {
	s := serve(t, 1)
	q := client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january}
	var waits []client.Wait
	patient := func(config *client.Config) {
		config.OnWait = func(w client.Wait) { waits = append(waits, w) }
	}
	if _, err := s.client(patient).Query(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	_, err := s.client(func(config *client.Config) { config.MaxWait = -1 }).Query(t.Context(), q)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != 429 || refused.RetryAfter < time.Second ||
		refused.RetryAfter > time.Minute {
		t.Fatalf("%v", err)
	}
	// A deadline before the end of the wait is reported at once, with the refusal.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.client(patient).Query(ctx, q); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &refused) ||
		len(waits) != 0 {
		t.Errorf("%v after %v", err, waits)
	}
	// A cancellation ends the wait.
	cancelled, stop := context.WithCancelCause(t.Context())
	gone := errors.New("the caller is gone")
	_, err = s.client(func(config *client.Config) {
		config.OnWait = func(w client.Wait) { waits = append(waits, w); stop(gone) }
	}).Query(cancelled, q)
	if !errors.Is(err, gone) || len(waits) != 1 || !errors.As(waits[0].Cause, &refused) || waits[0].For < time.Second {
		t.Errorf("%v after %v", err, waits)
	}
}

func TestBrokenExchangesAreRepeated(t *testing.T) {
	s := serve(t, 1000)
	type faults = map[int64]func(http.ResponseWriter, *http.Request)
	answer := func(body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
	}
	soon := time.Now().UTC().Add(-time.Hour).Format(http.TimeFormat)
	for name, c := range map[string]struct {
		faults faults
		asked  int64
		fails  string
	}{
		"a proxy's 502, 503 and 504": {faults{0: status(502, ""), 1: status(503, ""), 2: status(504, soon)}, 4, ""},
		"429 without a time":         {faults{0: status(429, ""), 1: status(429, "soon")}, 3, ""},
		"a query that is too expensive": {faults{0: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("x-runlens-reason", client.ReasonTooExpensive)
			w.WriteHeader(429)
		}}, 1, "429"},
		"hung up":    {faults{0: hangUp, 1: hangUp}, 3, ""},
		"broken off": {faults{0: breakOff}, 2, ""},
		"500 for ever": {faults{0: status(500, ""), 1: status(500, ""), 2: status(500, ""), 3: status(500, ""),
			4: status(500, "")}, 5, "500"},
		"a redirect is none of ours": {faults{0: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.base+r.URL.Path, http.StatusTemporaryRedirect)
		}}, 1, "307"},
		"404 of something else":        {faults{0: status(404, "")}, 1, "404"},
		"200 of something else":        {faults{0: status(200, "")}, 1, "not one of this API"},
		"more than MaxResponseBytes":   {faults{0: answer(strings.Repeat("\x00", 5000))}, 1, "MaxResponseBytes"},
		"rows that are no table":       {faults{0: answer(`{"columns":[{}],"rows":[[1,2]]}`)}, 1, "2 values for 1 columns"},
		"JSON of something else":       {faults{0: answer("{}")}, 1, "no columns or no rows"},
		"columns without rows":         {faults{0: answer(`{"columns":[{}]}`)}, 1, "no columns or no rows"},
		"values that are not scalars":  {faults{0: answer(`{"rows":[[{}]]}`)}, 1, "no string"},
		"a wait beyond every patience": {faults{0: status(429, "4000")}, 1, "429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := s.behind(c.faults)
			client := s.client(func(config *client.Config) { config.URL, config.MaxResponseBytes = f.URL, 4999 })
			r, err := client.Query(t.Context(), exampleQuery)
			switch {
			case c.fails == "" && (err != nil || r.Rows[0][0].String() != "4"):
				t.Errorf("%v %v", r, err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("%v, want %s", err, c.fails)
			}
			if asked := f.asked.Load(); asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// An address of https that has a server without TLS is wrong, and what comes from it no answer: both are said at once.
func TestServerWithoutTLS(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<html>")
	}))
	defer html.Close()
	ssh, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ssh.Close()
	go func() {
		for conn, err := ssh.Accept(); err == nil; conn, err = ssh.Accept() {
			io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n")
			conn.Close()
		}
	}()
	for address, says := range map[string]string{
		strings.Replace(html.URL, "http:", "https:", 1): "server gave HTTP response to HTTPS client",
		"https://" + ssh.Addr().String():                "tls: first record does not look like a TLS handshake",
		html.URL:                                        "the answer of " + html.URL + " is not one of this API: ",
	} {
		c, err := client.New(client.Config{URL: address, Key: "k", OnWait: func(w client.Wait) {
			t.Errorf("%s is asked again after %v", address, w.Cause)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Catalog(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, not %s", address, err, says)
		}
	}
}

// A server that never answered is reported at once; one that did may be restarting.
func TestServerNotRunning(t *testing.T) {
	s := serve(t, 1000)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	waits := 0
	c := s.client(func(config *client.Config) {
		config.URL, config.OnWait = address, func(client.Wait) { waits++ }
	})
	_, err = c.Query(t.Context(), exampleQuery)
	var lost *client.ConnectionError
	if !errors.As(err, &lost) || !lost.NotConnected() || waits != 0 || strings.Contains(err.Error(), s.key) {
		t.Errorf("%v after %d waits", err, waits)
	}
	_, err = s.client(func(config *client.Config) {
		config.URL, config.OnWait = "http://analytics.example.com", func(client.Wait) { waits++ }
		config.HTTP.Transport = &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address})}
	}).Query(t.Context(), exampleQuery)
	if !errors.As(err, &lost) || !lost.NotConnected() || waits != 0 {
		t.Errorf("through a proxy that is not running: %v after %d waits", err, waits)
	}
	if c.URL() != "http://"+address {
		t.Errorf("the address is %s", c.URL())
	}
	f := s.behind(nil)
	c = s.client(func(config *client.Config) {
		config.URL, config.OnWait = f.URL, func(client.Wait) { waits++ }
		dial := func(ctx context.Context, network, to string) (net.Conn, error) {
			if f.asked.Load() == 1 && waits < 2 {
				to = address // where nothing listens
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		}
		config.HTTP.Transport = &http.Transport{DisableKeepAlives: true, DialContext: dial}
	})
	for range 2 {
		if _, err := c.Query(t.Context(), exampleQuery); err != nil {
			t.Fatal(err)
		}
	}
	if waits != 2 {
		t.Errorf("%d waits for a server that comes back", waits)
	}
}
