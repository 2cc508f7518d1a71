package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/cmd/internal/console"
)

// A neighbour is another user of the machine, who answers on a port of the console's host and keeps what browsers send.
type neighbour struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string // cookies and referrers
	seen int      // requests
}

func newNeighbour(t *testing.T) *neighbour {
	n := &neighbour{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen++
		if sent := r.Header.Get("Cookie") + r.Header.Get("Referer"); sent != "" {
			n.sent = append(n.sent, fmt.Sprintf("%s: cookie %q, referrer %q", r.URL.Path, r.Header.Get("Cookie"),
				r.Header.Get("Referer")))
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<link rel="icon" href="data:,"><title>neighbour</title><p>Hello`)
	}))
	t.Cleanup(n.Close)
	return n
}

// got fails if a browser has sent anything that opens the console.
func (n *neighbour) got(t *testing.T, least int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen < least || len(n.sent) > 0 {
		t.Errorf("another port had %d requests and got %q", n.seen, n.sent)
	}
}

// What listens on another port of the console's host gets neither its cookie nor its path, in a real browser and in a
// client that keeps cookies as RFC 6265 says.
func consoleNeighbours(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "neighbours", console.Config{})
	n := newNeighbour(t)
	// A link that leads from the console to the neighbour, and then links that a person follows elsewhere.
	d.text(`(() => { const a = document.createElement("a"); a.href = ` + quote(n.URL+"/linked") + `; a.id = "away";
		a.textContent = "away"; document.querySelector("main").prepend(a) })()`)
	d.do(clickOn("#away"))
	d.until(`document.title === "neighbour"`)
	if got := d.text("document.referrer + (window.opener === null)"); got != "true" {
		t.Errorf("the neighbour's page sees %s", got)
	}
	for _, path := range []string{"/", "/explore", "/assets/console.js", "/download"} {
		d.do(navigate(n.URL + path))
		d.until(`document.title === "neighbour"`)
	}
	address, err := url.Parse(d.base)
	must(t, err)
	// Nor can its script read the console, of which it knows the address alone.
	for _, page := range []string{"/explore", "/download?format=csv"} {
		d.text(`(window.read = "", fetch(` + quote("http://"+address.Host+page) + `, {credentials: "include"})
			.then((r) => r.text()).then((t) => window.read = "read " + t, (e) => window.read = "refused"), "")`)
		d.until(`window.read !== ""`)
		if got := d.text("window.read"); got != "refused" {
			t.Errorf("%s: %s", page, got)
		}
	}
	n.got(t, 5)
	d.open(d.base + "/explore")
	d.shows(".tile", "Runs 9")
	d.do(navigate("http://" + address.Host + "/explore"))
	d.shows("h1", "Open the console")

	pages, err := console.New(t.Context(), d.config)
	must(t, err)
	server := httptest.NewUnstartedServer(nil)
	handler, first := pages.Handler(server.Listener.Addr().String(), func(string) {})
	server.Config.Handler = handler
	server.Start()
	defer server.Close()
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := http.Client{Jar: jar}
	response, err := browser.Get(first)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasSuffix(response.Request.URL.Path, "/explore") {
		t.Fatalf("the console: %v, %v", response, err)
	}
	response.Body.Close()
	for _, path := range []string{"/", "/explore", "/a/b"} {
		response, err := browser.Get(n.URL + path)
		must(t, err)
		response.Body.Close()
	}
	n.got(t, 8)
}
