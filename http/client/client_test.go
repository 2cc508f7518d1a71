package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/keys"
)

var january = client.Range{Start: "2026-01-01", End: "2026-01-31", Timezone: "UTC"}

func TestCatalogAndQuery(t *testing.T) {
	s := serve(t, 1000)
	c := s.client(nil)
	catalog, err := c.Catalog(t.Context())
	if err != nil || len(catalog.Models) != 2 || catalog.Models[0].Name != "agent_runs" ||
		len(catalog.Models[0].Metrics) != 7 {
		t.Fatal(catalog, err)
	}
	if companions := catalog.Models[0].Dimensions[0].Companions; len(companions) != 1 ||
		companions[0].Name != "agent_name" {
		t.Errorf("companions %v", companions)
	}
	q := client.Query{
		Model: "agent_runs", Metrics: []string{"run_count", "run_success_rate"}, Dimensions: []string{"agent_id"},
		Range:   january,
		Filters: []client.Filter{client.Eq("day", "2026-01-01"), client.In("day", "2026-01-01", "2026-01-02")},
		Order:   []client.OrderTerm{{Member: "run_count", Direction: client.Desc}},
	}
	before := time.Now().Add(-time.Hour)
	r, err := c.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range r.Columns {
		names = append(names, column.Name)
	}
	if !slices.Equal(names, []string{"agent_id", "agent_name", "run_count", "run_success_rate"}) || len(r.Rows) != 1 {
		t.Fatalf("%v %v", names, r.Rows)
	}
	row := r.Rows[0]
	count, whole := row[2].Int64()
	rate, number := row[3].Float64()
	if !row[1].IsNull() || row[1].String() != "" || !whole || count != 2 || !number || rate != 0.5 {
		t.Errorf("row %v", row)
	}
	if _, whole := row[3].Int64(); whole {
		t.Error("0.5 is no whole number")
	}
	if r.AsOf.Before(before) || r.QueryID == "" || r.RequestID == "" || r.Cursor != "" || r.CatalogVersion != "1.0" {
		t.Errorf("%+v", r)
	}
	if want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); !r.Range.EndUTC.Equal(want) {
		t.Errorf("endUtc %v", r.Range.EndUTC)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "non_additive_metric" || r.Warnings[0].Member != "run_success_rate" {
		t.Errorf("warnings %v", r.Warnings)
	}
}

func TestPages(t *testing.T) {
	s := serve(t, 1000)
	q := client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Range: january,
		Limit: 1}
	pages := s.client(nil).Pages(t.Context(), q)
	for range 2 { // an iterator can be used again
		var days []string
		var asOf []time.Time
		for page, err := range pages {
			if err != nil {
				t.Fatal(err)
			}
			days, asOf = append(days, page.Rows[0][0].String()), append(asOf, page.AsOf)
		}
		if !slices.Equal(days, []string{"2026-01-01", "2026-01-02", "2026-01-03"}) || !asOf[0].Equal(asOf[2]) {
			t.Errorf("%v as of %v", days, asOf)
		}
	}
	for page, err := range pages {
		if err != nil || page.Cursor == "" {
			t.Fatal(page, err)
		}
		q.Cursor = page.Cursor
		break
	}
	for page, err := range s.client(nil).Pages(t.Context(), q) {
		if err != nil || page.Rows[0][0].String() != "2026-01-02" {
			t.Fatal(page, err)
		}
		break
	}
	q.Cursor = "" // without a limit a page has 500 rows
	q.Limit = 0
	count := 0
	for range s.client(nil).Pages(t.Context(), q) {
		count++
	}
	if count != 1 {
		t.Errorf("%d pages", count)
	}
}

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
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
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
	soon := time.Now().UTC().Add(-time.Hour).Format(http.TimeFormat)
	for name, c := range map[string]struct {
		faults faults
		asked  int64
		fails  string
	}{
		"a proxy's 502, 503 and 504": {faults{0: status(502, ""), 1: status(503, ""), 2: status(504, soon)}, 4, ""},
		"429 without a time":         {faults{0: status(429, ""), 1: status(429, "soon")}, 3, ""},
		"hung up":                    {faults{0: hangUp, 1: hangUp}, 3, ""},
		"broken off":                 {faults{0: breakOff}, 2, ""},
		"500 for ever": {faults{0: status(500, ""), 1: status(500, ""), 2: status(500, ""), 3: status(500, ""),
			4: status(500, "")}, 5, "500"},
		"a redirect is none of ours": {faults{0: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.base+r.URL.Path, http.StatusTemporaryRedirect)
		}}, 1, "307"},
		"404 of something else":        {faults{0: status(404, "")}, 1, "404"},
		"200 of something else":        {faults{0: status(200, "")}, 1, "not one of this API"},
		"more than MaxResponseBytes":   {faults{0: func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 5000)) }}, 1, "MaxResponseBytes"},
		"rows that are no table":       {faults{0: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"columns":[],"rows":[[1]]}`)) }}, 1, "1 values for 0 columns"},
		"values that are not scalars":  {faults{0: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"rows":[[{}]]}`)) }}, 1, "no string"},
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

var exampleQuery = client.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january}

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
	if c.URL() != "http://"+address {
		t.Errorf("the address is %s", c.URL())
	}
	f := s.behind(nil)
	c = s.client(func(config *client.Config) {
		config.URL, config.OnWait = f.URL, func(client.Wait) { waits++ }
		config.HTTP.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			if f.asked.Load() == 1 && waits < 2 {
				to = address // where nothing listens
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		}}
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

func TestConfigIsChecked(t *testing.T) {
	for url, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "localhost": "http://localhost", "[::1]:80": "http://[::1]:80", "https://a.example/x/": "https://a.example/x",
		"a.example": "https://a.example", "a.example:8443/api": "https://a.example:8443/api", "http://10.0.0.1": "http://10.0.0.1",
		"": "", "ftp://x": "", "http://": "", "http://u:p@x": "", "u:p@x": "", "http://x?y": "", "http://x#y": "", "http://x:y": "", "/x": "",
	} {
		c, err := client.New(client.Config{URL: url, Key: "k"})
		if err != nil && want == "" {
			if strings.Contains(err.Error(), "u:p") {
				t.Errorf("%v shows a password", err)
			}
			continue
		}
		if err != nil || c.URL() != want {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	for _, key := range []string{"", "a b", "a\nb", "ä"} {
		if _, err := client.New(client.Config{URL: "localhost", Key: key}); err == nil || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// Numbers keep the digits they came with; every value goes back to JSON as it came.
func TestValues(t *testing.T) {
	for _, text := range []string{`null`, `"a\"ü"`, `""`, `0`, `-1`, `9223372036854775807`, `9007199254740993`, `0.1`, `1e-7`, `18446744073709551616`} {
		var v client.Value
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if back, err := json.Marshal(v); err != nil || string(back) != text {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	var v client.Value
	if err := json.Unmarshal([]byte(`9007199254740993`), &v); err != nil {
		t.Fatal(err)
	}
	if n, ok := v.Int64(); !ok || n != 9007199254740993 {
		t.Errorf("%d %t", n, ok)
	}
	for _, text := range []string{`true`, `{}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
