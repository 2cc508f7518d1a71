package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

// A deskConsole is a console of a desk's organization, on a day of its own, and a browser that shows it.
type deskConsole struct {
	tab
	desk  *desk
	base  string                        // with the path of the session, and without a / at its end
	stop  func()                        // of the console
	asked atomic.Int32                  // how many requests the server got
	hold  atomic.Pointer[chan struct{}] // the server answers no query until it is closed; nil for at once

	config console.Config

	unknown atomic.Bool // the server gets a key that it does not know, as if the console's had been revoked
	broken  atomic.Bool // the server answers 500
}

// consoleNow is the console's clock: the afternoon of the last day that has runs.
var consoleNow = time.Date(2026, 1, 15, 15, 0, 0, 0, time.UTC)

const agentOfDesk = "0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10"

// console opens a console of a desk's own runs.
func (o office) console(t *testing.T, organization string, config console.Config) *deskConsole {
	t.Helper()
	d := &deskConsole{tab: o.browser.another(t)}
	d.desk = o.stored(t, organization,
		`{"record":"agent","organization_id":"`+organization+`","agent_id":"`+agentOfDesk+
			`","name":"Billing desk","slug":"billing","updated_at":"2026-01-01T00:00:00Z"}`,
		"2025-12-29 ada@x.example COMPLETED",
		"2026-01-05 ada@x.example COMPLETED", "2026-01-05 ada@x.example FAILED", "2026-01-05 bo@x.example COMPLETED",
		"2026-01-06 ada@x.example COMPLETED",
		"2026-01-08 bo@x.example COMPLETED", "2026-01-08 bo@x.example FAILED", "2026-01-08 +15550100004 COMPLETED",
		"2026-01-08 +15550100004 RUNNING",
		"2026-01-15 ada@x.example RUNNING")
	to, err := url.Parse(o.base)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that the console has given up
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		if held := d.hold.Load(); held != nil {
			select {
			case <-*held:
			case <-r.Context().Done():
				return
			}
		}
		if d.broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"error":{"code":"internal_error","message":"An internal error occurred","request_id":"1"}}`)
			return
		}
		if d.unknown.Load() {
			r.Header.Set("Authorization", "Bearer rl_gone")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	config.Client, err = client.New(client.Config{URL: slow.URL, Key: d.desk.key, MaxWait: -1})
	must(t, err)
	config.Home = profile.Folder(t.TempDir())
	if config.Now == nil {
		config.Now = func() time.Time { return consoleNow }
	}
	d.config = config
	d.serve(t, config)
	return d
}

// serve shows the console in the browser.
func (d *deskConsole) serve(t *testing.T, config console.Config) {
	t.Helper()
	pages, err := console.New(t.Context(), config)
	must(t, err)
	server := httptest.NewUnstartedServer(nil)
	address := server.Listener.Addr().String()
	handler, first := pages.Handler(address, func(string) {})
	server.Config.Handler = handler
	server.Start()
	d.stop = sync.OnceFunc(server.Close)
	t.Cleanup(d.stop)
	d.open(first)
	d.base = d.text(`location.origin + "/" + location.pathname.split("/")[1]`)
}

// TestConsole has the tests of one server. Those that run no command that asks it run at the same time.
func TestConsole(t *testing.T) {
	o := office{browser: newBrowser(t), flags: store(t)}
	// A page may be asked while the one before it is still answered.
	o.base, o.admin, _ = started(t, append(o.flags, "--rate-limit-per-minute", "10000", "--org-concurrency", "100")...)
	for name, test := range map[string]func(*testing.T, office){
		"first": consoleFirst, "explorer": consoleExplorer, "narrowing": consoleNarrowing, "copies": consoleCopies,
		"failures": consoleFailures, "forgets": consoleForgets, "layout": consoleLayout,
		"dashboards": consoleDashboards, "operator": consoleOperator,
		"worker": consoleWorker, "looks": consoleLooks, "speed": consoleSpeed, "neighbours": consoleNeighbours,
		"without the token": consoleWithoutToken, "saving": consoleSaving, "sharing": consoleSharing,
		"documentation": documentationPages, "narrowed": consoleNarrowed,
		"late": consoleLate, "rates": consoleRates, "periods": consolePeriods, "stays open": consoleStaysOpen,
		"long copies": consoleLongCopies, "first day": consoleFirstDay,
	} {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}
