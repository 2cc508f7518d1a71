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

// What answers in place of ClickHouse may quote the address that was asked, as error pages of gateways do, and with it
// the values of filters. The log says its status alone.
func TestWhatAGatewayQuotesIsNotLogged(t *testing.T) {
	flags := elsewhere(t)
	engine, err := url.Parse(flags[1])
	if err != nil {
		t.Fatal(err)
	}
	user := engine.User
	engine.User, engine.Path = nil, ""
	reverse := httputil.NewSingleHostReverseProxy(engine)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "ada") {
			http.Error(w, "no answer from "+r.URL.String(), http.StatusBadGateway)
			return
		}
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(gateway.Close)
	flags[1] = "http://" + user.String() + "@" + strings.TrimPrefix(gateway.URL, "http://") + "/runlens"
	var log bytes.Buffer
	app, err := startApp(t.Context(), serveWith(t, append(flags, "--data-dir", t.TempDir())...),
		slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, key := createKey(t, flags)
	status, body := post(t, "http://"+app.Address(), key, strings.Replace(totals, `"range"`,
		`"filters":[{"member":"user_identifier","op":"eq","value":"ada@example.com"}],"range"`, 1))
	if err := app.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if status != 500 || !strings.Contains(log.String(), "502") {
		t.Errorf("%d %s; the log is\n%s", status, body, log.String())
	}
	if strings.Contains(log.String(), "ada") || strings.Contains(body, "ada") {
		t.Errorf("the log or the answer names a person:\n%s\n%s", body, log.String())
	}
}
