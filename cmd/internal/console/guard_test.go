package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Only the browser that opened the printed address is let in, under the console's own names.
func TestGuard(t *testing.T) {
	var used []string
	g := newGuard("127.0.0.1:8100", func(next string) { used = append(used, next) })
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	inside := func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("inside")) }
	handler := g.protect(http.HandlerFunc(inside), refuse)
	send := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1:8100"+path, nil)
		for i := 0; i < len(headers); i += 2 {
			if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
				r.Host = headers[i+1]
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	first := g.current()
	for _, path := range []string{
		"/", "/explore", "/?token=", "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", "/explore?token=" + first,
	} {
		if w := send("GET", path); w.Code != 401 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	opened := send("GET", "/?token="+first)
	cookie := opened.Header().Get("Set-Cookie")
	if opened.Code != http.StatusSeeOther || opened.Header().Get("Location") != "/" || len(used) != 1 ||
		!strings.Contains(cookie, "; HttpOnly; SameSite=Strict") || !strings.HasPrefix(cookie, "runlens-console-8100=") {
		t.Fatalf("opened: %d %v %q", opened.Code, opened.Header(), used)
	}
	if w := send("GET", "/?token="+first); w.Code != 401 {
		t.Errorf("the address works twice: %d", w.Code)
	}
	session, _, _ := strings.Cut(cookie, ";")
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"inside":                 {"GET", "/explore", nil, 200},
		"by name":                {"GET", "/explore", []string{"Host", "localhost:8100"}, 200},
		"a link of another site": {"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		"rebound name":           {"GET", "/explore", []string{"Host", "evil.example:8100"}, 421},
		"other port":             {"GET", "/explore", []string{"Host", "127.0.0.1:9999"}, 421},
		"script of another site": {"GET", "/answer", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		"script of another port": {"GET", "/answer", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"a change":               {"POST", "/explore", nil, 405},
		"a preflight":            {"OPTIONS", "/answer", []string{"Origin", "http://evil.example"}, 405},
	} {
		w := send(c.method, c.path, append(c.headers, "Cookie", session)...)
		if w.Code != c.want || (w.Body.String() == "inside") != (c.want == 200) {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Access-Control-Allow-Origin") != "" ||
			w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	if w := send("GET", "/explore", "Cookie", session[:len(session)-1]); w.Code != 401 {
		t.Errorf("a wrong cookie: %d", w.Code)
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error("the policy allows too much")
	}
}
