package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// behindGateway are the flags of a ClickHouse behind a gateway.
func behindGateway(t *testing.T, statusOf func(*http.Request) int) []string {
	t.Helper()
	flags := elsewhere(t)
	flags[1] = gateway(t, flags[1], statusOf)
	return flags
}

// gateway is the address of a gateway before the ClickHouse at another address. Where statusOf is not 0 the gateway
// answers itself, with a page that quotes the address.
func gateway(t *testing.T, address string, statusOf func(*http.Request) int) string {
	t.Helper()
	engine, err := url.Parse(address)
	must(t, err)
	user := engine.User
	engine.User, engine.Path = nil, ""
	reverse := httputil.NewSingleHostReverseProxy(engine)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := statusOf(r); status != 0 {
			http.Error(w, "no answer from "+r.URL.String(), status)
			return
		}
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "http://" + user.String() + "@" + strings.TrimPrefix(server.URL, "http://") + "/runlens"
}

// While ClickHouse is started again behind a gateway, that answers in its place. What is ingested meanwhile waits, and
// its log has no page of the gateway.
func TestIngestOutlastsAGateway(t *testing.T) {
	statuses := make(chan int, 3)
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		statuses <- status
	}
	flags := behindGateway(t, func(r *http.Request) int {
		if strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO runs") && len(statuses) > 0 {
			return <-statuses
		}
		return 0
	})
	code, out, stderr := command(t, "", append([]string{"ingest", "--json", "--record", "run",
		fileOf(t, "runs.csv", []byte(runsCSV))}, flags...)...)
	if code != 0 || !strings.Contains(out, `"runs":2`) || len(statuses) > 0 || !strings.Contains(stderr, "HTTP 502") ||
		strings.Contains(stderr, "no answer from") {
		t.Errorf("exit %d, %d answers left\n%s\n%s", code, len(statuses), out, stderr)
	}
}

// What answers in place of ClickHouse may quote the address that was asked, as error pages of gateways do, and with it
// the values of filters. The log says its status alone.
func TestWhatAGatewayQuotesIsNotLogged(t *testing.T) {
	const person = "lovelace" // no random identifier, of which all addresses have one, has these letters
	flags := behindGateway(t, func(r *http.Request) int {
		if strings.Contains(r.URL.RawQuery, person) {
			return http.StatusBadGateway
		}
		return 0
	})
	var log bytes.Buffer
	app, err := startApp(t.Context(), serveWith(t, append(flags, "--data-dir", t.TempDir())...),
		slog.New(slog.NewJSONHandler(&log, nil)))
	must(t, err)
	_, key := createKey(t, flags)
	status, body := post(t, "http://"+app.Address(), key, strings.Replace(totals, `"range"`,
		`"filters":[{"member":"user_identifier","op":"eq","value":"`+person+`@example.com"}],"range"`, 1))
	if err := app.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if status != 500 || !strings.Contains(log.String(), "502") {
		t.Errorf("%d %s; the log is\n%s", status, body, log.String())
	}
	if strings.Contains(log.String(), person) || strings.Contains(body, person) {
		t.Errorf("the log or the answer names a person:\n%s\n%s", body, log.String())
	}
}
