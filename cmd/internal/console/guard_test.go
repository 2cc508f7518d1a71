package console

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A guarded is a console that is asked without a browser.
type guarded struct {
	*guard
	handler http.Handler
	now     time.Time
	used    []string
}

func newGuarded() *guarded {
	c := &guarded{now: time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)}
	c.guard = newGuard("127.0.0.1:8100", func() time.Time { return c.now },
		func(next string) { c.used = append(c.used, next) })
	refuse := func(w http.ResponseWriter, r *http.Request) { (&Console{}).signIn(w, c.again(r)) }
	inside := func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("inside " + r.URL.Path)) }
	c.handler = c.protect(http.HandlerFunc(inside), refuse)
	return c
}

func (c *guarded) send(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8100"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// opened opens the printed address and returns where it leads, and the cookie.
func (c *guarded) opened(t *testing.T) (path, cookie string) {
	t.Helper()
	w := c.send("GET", "/?token="+c.current())
	set := w.Header().Get("Set-Cookie")
	path = w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || len(path) != 28 || path[0] != '/' || path[27] != '/' ||
		!strings.HasSuffix(set, "; Path="+path+"; HttpOnly; SameSite=Strict") {
		t.Fatalf("opened: %d %v", w.Code, w.Header())
	}
	cookie, _, _ = strings.Cut(set, ";")
	return path, cookie
}

// A browser names no port where it is that of HTTP.
func TestHostsOfPort80(t *testing.T) {
	for address, want := range map[string][]string{
		"127.0.0.1:80": {"127.0.0.1", "127.0.0.1:80", "localhost", "[::1]", "[::1]:80"},
		"127.0.0.5:80": {"127.0.0.5", "localhost"}, "[::1]:80": {"[::1]"}, "127.0.0.1:8080": {"127.0.0.1:8080"},
	} {
		got := loopbackNames(address)
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s is not named %s, but %q", address, name, got)
			}
		}
		if slices.Contains(got, "localhost") != strings.HasSuffix(address, ":80") {
			t.Errorf("%s is named %q", address, got)
		}
	}
}

// Only the browser that opened the printed address is let in, under the console's own names.
func TestGuard(t *testing.T) {
	c := newGuarded()
	first := c.current()
	for _, path := range []string{
		"/", "/explore", "/?token=", "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", "/explore?token=" + first,
	} {
		if w := c.send("GET", path); w.Code != 401 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	path, session := c.opened(t)
	if w := c.send("GET", "/?token="+first); w.Code != 401 || len(c.used) != 1 || c.used[0] == first {
		t.Errorf("the address works twice: %d %q", w.Code, c.used)
	}
	form := func(site string) []string { return []string{"Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate"} }
	for name, q := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"inside":                 {"GET", path + "explore", nil, 200},
		"its first page":         {"GET", path, nil, 200},
		"with another's cookie":  {"GET", path, []string{"Cookie", cookieName + "=x; " + session}, 200},
		"by name":                {"GET", path + "explore", []string{"Host", "localhost:8100"}, 200},
		"a link of another site": {"GET", path, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		"no session":             {"GET", "/explore", nil, 401},
		"another session":        {"GET", "/AAAAAAAAAAAAAAAAAAAAAAAAAA/explore", nil, 401},
		"not below the path":     {"GET", strings.TrimSuffix(path, "/"), nil, 401},
		"rebound name":           {"GET", path + "explore", []string{"Host", "evil.example:8100"}, 421},
		"other port":             {"GET", path + "explore", []string{"Host", "127.0.0.1:9999"}, 421},
		"script of another site": {"GET", path, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		"script of another port": {"GET", path + "answer", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"a change":               {"POST", path + "explore", nil, 405},
		"something to keep":      {"POST", path + "save", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		"a link":                 {"POST", path + "link", []string{"Origin", "http://127.0.0.1:8100"}, 200},
		"without a session":      {"POST", "/save", nil, 405},
		"in no session":          {"POST", "/AAAAAAAAAAAAAAAAAAAAAAAAAA/save", nil, 401},
		"of a rebound name":      {"POST", path + "save", []string{"Host", "evil.example:8100"}, 421},
		"a form of another site": {"POST", path + "save", form("cross-site"), 403},
		"a form of another port": {"POST", path + "save", form("same-site"), 403},
		"of another origin":      {"POST", path + "save", []string{"Origin", "http://evil.example"}, 403},
		"of another port":        {"POST", path + "save", []string{"Origin", "http://127.0.0.1:9999"}, 403},
		"of no origin":           {"POST", path + "save", []string{"Origin", "null"}, 403},
		"a change below":         {"POST", path + "save/x", nil, 405},
		"another change":         {"PUT", path + "save", nil, 405},
		"a preflight":            {"OPTIONS", path + "answer", []string{"Origin", "http://evil.example"}, 405},
		"a long question":        {"GET", path + "explore?filter=" + strings.Repeat("x", maxAddress-7), nil, 200},
		"one too long":           {"GET", path + "explore?filter=" + strings.Repeat("x", maxAddress-6), nil, 414},
	} {
		w := c.send(q.method, q.path, append([]string{"Cookie", session}, q.headers...)...)
		if w.Code != q.want || strings.HasPrefix(w.Body.String(), "inside /") != (q.want == 200) ||
			strings.Contains(w.Body.String(), path) && q.want == 200 {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, q.want, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Access-Control-Allow-Origin") != "" ||
			w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
			w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	for _, wrong := range []string{session[:len(session)-1], session + "x", cookieName + "=", "x=" + session} {
		if w := c.send("GET", path+"explore", "Cookie", wrong); w.Code != 401 {
			t.Errorf("the cookie %s: %d", wrong, w.Code)
		}
	}
	other, _ := c.opened(t)
	if w := c.send("GET", other, "Cookie", session); w.Code != 401 {
		t.Errorf("the cookie of another session: %d", w.Code)
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error("the policy allows too much")
	}
}

// A session ends when nothing is asked for an hour, and after a day.
func TestSessionsEnd(t *testing.T) {
	c := newGuarded()
	path, cookie := c.opened(t)
	began := c.now
	for c.now.Before(began.Add(sessionLife)) {
		if w := c.send("GET", path, "Cookie", cookie); w.Code != 200 {
			t.Fatalf("after %v: %d", c.now.Sub(began), w.Code)
		}
		c.now = c.now.Add(sessionIdle - time.Second)
	}
	if w := c.send("GET", path, "Cookie", cookie); w.Code != 401 {
		t.Errorf("after %v: %d", c.now.Sub(began), w.Code)
	}
	path, cookie = c.opened(t)
	c.now = c.now.Add(sessionIdle)
	if w := c.send("GET", path, "Cookie", cookie); w.Code != 401 || len(c.sessions) != 1 {
		t.Errorf("idle: %d, %d sessions", w.Code, len(c.sessions))
	}
}

// The page that says how to open the console leads to pages of the session only.
func TestContinueStaysInTheConsole(t *testing.T) {
	c := newGuarded()
	path, _ := c.opened(t)
	for address, want := range map[string]string{
		path + "explore?last=7d&top=5": `<a href="` + path + `explore?last=7d&amp;top=5">continue</a>`,
		path + "/evil.example":         `<a href="` + path + `/evil.example">continue</a>`,
		"//evil.example":               "",
		"//evil.example" + path:        "",
		"/%5Cevil.example":             "",
		"/\\evil.example/" + path:      "",
		"/%09/evil.example":            "",
		"/javascript:alert(1)":         "",
		"/" + path + "explore":         "",
		"/explore":                     "",
	} {
		w := c.send("GET", address)
		_, link, _ := strings.Cut(w.Body.String(), "followed a link to here, ")
		link, _, _ = strings.Cut(link, ".</p>")
		if w.Code != 401 || link != want {
			t.Errorf("%s: %d, %q, want %q", address, w.Code, link, want)
		}
	}
}

// No address makes pages grow without a bound: what it has is in all links of a page.
func TestNarrowedPeriodsAreBounded(t *testing.T) {
	c := &Console{Config: Config{Now: time.Now}, catalog: &client.Catalog{Models: []client.Model{
		{Name: "agent_runs", Metrics: []client.Metric{{Name: "run_count"}}}}}}
	values := map[string][]string{"metrics": {"run_count"}, "wider": slices.Repeat([]string{"last=30d"}, 40_000)}
	values["wider"] = append(values["wider"], strings.Repeat("x", maxPeriod+1), "last=7d")
	l, err := c.parseLook(values)
	if err != nil || len(l.Wider) != maxWider || l.Wider[maxWider-1] != "last=7d" || l.Wider[0] != "last=30d" {
		t.Fatalf("%d periods, %v", len(l.Wider), err)
	}
	size := 0
	for _, crumb := range l.crumbs(c) {
		size += len(crumb.Text) + len(crumb.Href)
	}
	if size > 20_000 {
		t.Errorf("the crumbs have %d bytes", size)
	}
}
