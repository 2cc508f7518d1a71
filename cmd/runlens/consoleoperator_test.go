package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/usage"
)

// The operator's page shows a server: its health and versions, who asks, what is slow, and how that is answered.
func consoleOperator(t *testing.T, o office) {
	t.Parallel()
	admin := strings.TrimPrefix(o.admin, "http://")
	// More, and slower, than whatever else the tests ask.
	recorded(t, o, 500, usage.Entry{At: time.Now(), OrganizationID: "operator", KeyID: "busiest", Shape: usage.Shape{
		Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"user_identifier"},
		Filters: []string{"agent_id eq"}, Days: 30, Timezone: "Europe/Stockholm", Limit: 2,
	}, Took: 2 * time.Hour, Cost: cost.Cost{Rows: 100}})
	d := o.console(t, "operator", console.Config{Admin: []console.Admin{
		{Address: admin, Token: adminToken(t, o.flags)}, {Address: "127.0.0.1:1"},
	}})
	d.open(d.base + "/operator")
	d.until(`document.querySelectorAll("#status section").length === 2 &&
		document.querySelectorAll("#usage section").length === 2`)
	for _, says := range []string{"ready", "Rollup watermark", "Answered 200", "Version runlens " + version,
		"Engine ClickHouse 2", "Engine running for"} {
		d.shows("#status section:nth-of-type(1)", says)
	}
	d.shows("#status section:nth-of-type(2)", "No answer")

	d.shows("#usage section:nth-of-type(1) tbody tr:nth-child(1)", "operator run count by user identifier, "+
		"filtered: agent id eq, days: 30 in Europe/Stockholm, rows: up to 2 500 7 200 000 ms 7 200 000 ms 50 000")
	d.shows("#usage section:nth-of-type(2) tbody tr:nth-child(1)", "operator busiest 500 0 0 7 200 000 ms 50 000")
	d.click("#usage tbody tr:nth-child(1) button")
	d.until(`!!document.querySelector("#explanation pre")`)
	for _, says := range []string{"of operator, from 2025-12-17 to 2026-01-15, without its filters",
		`"dimensions":["user_identifier"]`, "answer 2 rows", "strategy base", "FROM runs FINAL", "ReadFromMergeTree"} {
		d.shows("#explanation", says)
	}
	d.do(chromedp.EmulateViewport(400, 400))
	d.stays("#status", "#status .table")
	d.stays("#usage", "#usage tbody tr:nth-child(1) button")
	// What a server refuses is said.
	d.do(navigate(d.base + "/operator/explain?admin=0&organization_id=operator&model=agent_runs&metrics=gone&days=1" +
		"&limit=1&timezone=UTC"))
	d.shows(".bad", "unknown_member at gone")
}

// stays fails unless a part of a page that is asked again leaves where a person is: what is scrolled, and what has the
// focus.
func (b tab) stays(part, place string) {
	b.Helper()
	found := `const e = document.querySelector(` + quote(place) + `), table = e.closest(".table"); `
	at := `(() => { ` + found + `return [Math.round(scrollY), table.scrollLeft, e === document.activeElement] + ""; })()`
	want := b.text(`(() => { ` + found + `window.old = e; e.focus(); table.scrollLeft = 40; scrollTo(0, 150);
		return ` + at + `; })()`)
	if want != "150,40,true" {
		b.Fatalf("%s is at %s", place, want)
	}
	b.text(`htmx.trigger(` + quote(part) + `, "again"), ""`)
	b.until(`!old.isConnected`)
	b.rest()
	if got := b.text(at); got != want {
		b.Errorf("%s is at %s, and was at %s before it was asked again", place, got, want)
	}
}

// Without the token the operator's page says what is missing, and how to give it.
func consoleWithoutToken(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "stranger", console.Config{
		Admin: []console.Admin{{Address: strings.TrimPrefix(o.admin, "http://")}},
	})
	d.open(d.base + "/operator")
	d.shows("#status section", "Answered 200")
	d.shows("#usage .bad", "does not say who asks what. It wants a token: name the data directory of the server")
	d.do(navigate(d.base + "/operator/explain?admin=0&organization_id=operator&model=agent_runs&metrics=run_count&days=1" +
		"&limit=1&timezone=UTC"))
	d.shows(".bad", "There is no explanation: It wants a token")
}

// recorded writes an entry so many times into the log of usage.
func recorded(t *testing.T, o office, times int, e usage.Entry) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	store, err := openStore(t.Context(), storeFlags{DataDir: o.flags[1], EngineLib: o.flags[3]}, quiet)
	must(t, err)
	defer store.Close()
	log := usage.NewLog(store.Conn(), quiet)
	for range times {
		log.Record(e)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	log.Run(ended) // writes what was recorded
}

// The operator's page shows a worker: what it still copies, how far it is behind, and what it rejects.
func consoleWorker(t *testing.T, o office) {
	t.Parallel()
	url, conn := operational(t, 3)
	execute(t, conn, "INSERT INTO runs (organization_id, run_id, agent_id, status) VALUES ('acme', gen_random_uuid(), "+
		"gen_random_uuid(), 'STATUS_OF_TOMORROW')")
	locked, err := conn.Begin(t.Context()) // its rows can't be read until it ends
	must(t, err)
	lock(t, locked)
	address, stop := working(t, url, o.flags...)
	d := o.console(t, "worker", console.Config{Admin: []console.Admin{{Address: address}}})
	d.open(d.base + "/operator")
	const again = `htmx.trigger("#status", "again"), ` // sooner than in 5 seconds
	row := func(name, value, state string) {
		t.Helper()
		d.until(again + `[...document.querySelectorAll("#status tbody tr")].map((r) => [...r.cells].map((c) => c.textContent))
			.some(([name, value, state]) => name === ` + quote(name) + ` && /` + value + `/.test(value) && state === ` +
			quote(state) + `)`)
	}
	row("Worker: run", "^copying$", "good")
	d.shows("#status section p", "records are still being copied for the first time")
	must(t, locked.Rollback(t.Context()))
	for _, kind := range []string{"agent", "attribution", "run"} {
		row("Worker: "+kind, "^[0-9]+ s behind$", "good")
	}
	row("Rejected: run", "^1$", "look")
	row("Engine", "^ClickHouse 2", "good")
	d.until(again + `document.querySelector("#status section p").innerText === "ready"`)
	if got := d.text(`document.querySelector("#usage").innerText`); got != "" {
		t.Errorf("a worker has no usage, and the page shows %s", got)
	}
	stop()
	d.until(again + `document.querySelector("#status section p").innerText.startsWith("No answer")`)
}

func lock(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
}

// What the operator's page is made of is on the admin address only, and only for the operator.
func adminOperator(t *testing.T, o office) {
	o.desk(t, "explained", "2026-01-05 ada@x.example COMPLETED", "2026-01-06 bo@x.example COMPLETED")
	const path = "/explain?organization_id=explained"
	explain := func(method, address, body string, headers ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequest(method, address, strings.NewReader(body))
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+adminToken(t, o.flags))
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		return send(t, request)
	}
	ada := strings.Replace(totals, `"range"`,
		`"dimensions":["day"],"filters":[{"member":"user_identifier","op":"eq","value":"ada@x.example"}],"range"`, 1)
	unknown := strings.Replace(totals, "run_count", "x", 1)
	for name, c := range map[string]struct {
		method, address, body string
		headers               []string
		status                int
		says                  string
	}{
		"explained":         {"POST", o.admin + path, ada, nil, 200, "1 row as of"},
		"without the token": {"POST", o.admin + path, ada, []string{"Authorization", ""}, 401, "a token is required"},
		"another token": {"GET", o.admin + "/usage", "", []string{"Authorization", "Bearer x"}, 401,
			"a token is required"},
		"invalid UTF-8": {"POST", o.admin + path, strings.Replace(ada, "2026", "\xff", 1), nil, 400,
			"malformed JSON"},
		"data after it":     {"POST", o.admin + path, ada + "{}", nil, 400, "data after the JSON value"},
		"by a read":         {"GET", o.admin + path, "", nil, 405, "Method Not Allowed"},
		"unknown member":    {"POST", o.admin + path, unknown, nil, 400, "unknown_member at x"},
		"no body":           {"POST", o.admin + path, "", nil, 400, "invalid_query"},
		"long body":         {"POST", o.admin + path, strings.Repeat(" ", 2<<20) + ada, nil, 400, "too long"},
		"no organization":   {"POST", o.admin + "/explain", ada, nil, 400, "organization_id must be"},
		"for callers":       {"POST", o.base + path, ada, nil, 404, "not_found"},
		"usage for callers": {"GET", o.base + "/usage", "", nil, 404, "not_found"},
		"usage":             {"GET", o.admin + "/usage", "", nil, 200, `"slowest":[`},
	} {
		if status, text := explain(c.method, c.address, c.body, c.headers...); status != c.status ||
			!strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s, want %d and %q", name, status, text, c.status, c.says)
		}
	}
}
