package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
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
	if err != nil {
		t.Fatal(err)
	}
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
		if d.unknown.Load() {
			r.Header.Set("Authorization", "Bearer rl_gone")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	config.Client, err = client.New(client.Config{URL: slow.URL, Key: d.desk.key, MaxWait: -1})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	o.base, o.admin, _ = started(t, append(o.flags, "--rate-limit-per-minute", "10000")...)
	for name, test := range map[string]func(*testing.T, office){
		"explorer": consoleExplorer, "narrowing": consoleNarrowing, "copies": consoleCopies, "failures": consoleFailures,
		"dashboards": consoleDashboards, "operator": consoleOperator, "worker": consoleWorker, "looks": consoleLooks,
		"speed": consoleSpeed, "neighbours": consoleNeighbours, "without the token": consoleWithoutToken,
	} {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

// Every control changes the answer and the address; back leads back.
func consoleExplorer(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "explorer", console.Config{})
	d.shows("h1", "Explore")
	d.shows(".tile", "Run count 10 not over yet")
	d.shows("figcaption", "Run count per day from 17 December 2025 to 15 January 2026 in UTC.")
	d.rows("2025-12-29 | 1", "2026-01-05 | 3", "2026-01-06 | 1", "2026-01-08 | 4", "2026-01-15 not over | 1")
	if got := d.text(`document.querySelector("[data-chart] canvas") !== null`); got != "true" {
		t.Error("no chart is drawn")
	}
	d.shows(".asof", "As of 20")

	d.click("input[value=unique_initiator_count]")
	d.shows(".tile", "Unique initiator count not additive 3 not over yet") // not 1+2+1+2+1
	d.choose("#over", "week")
	d.rows("2025-12-15 not over | 0 | 0", "2025-12-22 | 0 | 0", "2025-12-29 | 1 | 1", "2026-01-05 | 8 | 3",
		"2026-01-12 not over | 1 | 1")
	d.shows(".notes", "The week of 2025-12-15 is a part of it: 2025-12-17 to 2025-12-21.")
	d.choose("#over", "none")
	d.rows() // totals only
	d.shows(".tile", "Run count 10")
	d.click("input[value=user_identifier]")
	d.rows("ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1", "+15550100004 | – | 2 | 1")
	d.shows("svg.bars g", "ada@x.example 5")
	if d.text(`document.querySelector("th:nth-child(4) .mark").innerText`) != "not additive" {
		t.Error("a distinct count is not marked in the table")
	}
	d.click("th:nth-child(1) a")
	d.rows("+15550100004 | – | 2 | 1", "ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1")
	d.click("th[aria-sort=ascending] a")
	d.rows("bo@x.example | – | 3 | 1", "ada@x.example | – | 5 | 1", "+15550100004 | – | 2 | 1")
	address := d.text("location.href")
	d.text("history.back()")
	d.until(`document.querySelector("th:nth-child(1)")?.ariaSort === "ascending"`)
	d.rest()
	d.rows("+15550100004 | – | 2 | 1", "ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1")
	d.open(address)
	d.rows("bo@x.example | – | 3 | 1", "ada@x.example | – | 5 | 1", "+15550100004 | – | 2 | 1")

	d.choose("#compare", "previous") // 17 December to 15 January, after 17 November to 16 December
	d.click("#sort-run_count_difference")
	d.shows("th[aria-sort=descending]", "Run count difference")
	d.choose("#compare", "")
	d.choose("#period", "last=7d")
	d.rows("ada@x.example | – | 1 | 1")
	d.choose("#compare", "previous") // 9 to 15 January, after 2 to 8 January
	d.shows(".tile", "Run count 1 -87.5% was 8")
	d.choose("#start", "2026-01-14")
	d.choose("#end", "2026-01-14")
	d.choose("#compare", "")
	d.shows(".tile", "Run count 0")
	if got := d.text("location.search"); !strings.Contains(got, "&start=2026-01-14") ||
		!strings.Contains(got, "&end=2026-01-14") {
		t.Errorf("the address is %s", got)
	}
	d.click("th:nth-child(1) a")
	if got := d.text("document.activeElement.id + '; ' + document.getElementById('said').innerText"); !strings.HasPrefix(
		got, "sort-user_identifier; As of 20") {
		t.Errorf("after a click the focus and what is said are %s", got)
	}
	// The afternoon in UTC is the next day in Auckland.
	d.choose("#period", "today=true")
	d.choose("#timezone", "Pacific/Auckland")
	d.shows("figcaption", "on 16 January 2026 in Pacific/Auckland")
	d.click("#my-zone")
	d.shows("figcaption", "on 15 January 2026 in Europe/Stockholm")
	d.choose("#model", "agent_user_activity")
	d.shows(".choices", "Interaction count")
	d.shows(".tile", "Attributed run count not additive 0")
	d.click("input[value=attributed_run_count]")
	d.shows("#answer", "choose at least one metric")
}

// A row, a bar and a stretch of the chart narrow the question; crumbs lead back, one step each.
func consoleNarrowing(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "narrowing", console.Config{})
	d.click("input[value=agent_id]")
	d.shows("figcaption", "Run count per day for each agent id")
	d.shows(".u-legend", "Billing desk")
	// The days from 5 to 8 January are at 19 to 22 of 29 steps.
	d.drag(".u-over", 18.8/29, 22.2/29)
	d.shows(".tile", "Run count 8")
	d.shows(".crumbs", "last 30d 2026-01-05 to 2026-01-08")
	d.rows(agentOfDesk+" | Billing desk | 2026-01-05 | 3", agentOfDesk+" | Billing desk | 2026-01-06 | 1",
		agentOfDesk+" | Billing desk | 2026-01-08 | 4")
	d.click(".table tr:nth-child(3) td:nth-child(3) a")
	d.shows(".tile", "Run count 4")
	d.shows("#chips", "")
	d.choose("#over", "none")
	d.click("input[value=user_identifier]")
	d.click("input[value=agent_id]")
	d.rows("+15550100004 | – | 2", "bo@x.example | – | 2")
	d.click("svg.bars g:nth-child(2) a")
	d.shows(".tile", "Run count 2")
	d.shows(".chips", "user identifier bo@x.example")
	d.shows("figcaption", "only where user identifier is bo@x.example")
	d.click(".chips a")
	d.shows(".tile", "Run count 4")

	// In a chart of bars a bar is its period.
	d.open(d.base + "/explore?metrics=run_count&dimensions=day&last=30d&chart=bar")
	d.drag(".u-over", 22.5/30, 22.5/30) // 8 January is the 23rd of 30 days
	d.shows(".crumbs", "last 30d 2026-01-08")
	d.shows(".tile", "Run count 4")
	d.choose("#chart", "line")

	// A filter is chosen among the values that there are; a name stands for its identifier.
	d.do(focus("#filter-member"))
	d.rest()
	d.until(`[...document.querySelectorAll("#suggested option")].some((o) => o.label === "Billing desk")`)
	d.do(typed("#filter-value", "Billing desk\r"))
	d.until(`document.querySelector(".chips")?.innerText.includes("Billing")`)
	d.rest()
	d.shows(".chips", "agent id Billing desk")
	if got := d.text(`document.querySelector("input[name=filter]").value`); got != "agent_id="+agentOfDesk {
		t.Errorf("the filter is %s", got)
	}
	d.shows(".tile", "Run count 4")
	d.choose("#filter-member", "user_identifier")
	d.choose("#filter-value", "ada@x.example")
	d.shows(".tile", "Run count 0")
	d.choose("#filter-value", "bo@x.example")
	d.shows(".tile", "Run count 2")
	d.shows(".chips", "user identifier ada@x.example")
}
