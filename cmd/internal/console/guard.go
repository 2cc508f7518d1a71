package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// policy is the Content-Security-Policy of every page: scripts and styles are files of the console, and nothing else
// is loaded or sent anywhere. A picture may be one that the page has made, for a download.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// A guard lets only the browser in that has opened the printed address.
type guard struct {
	hosts   []string // host:port as the browser may name this console
	cookie  string   // its name has the port: browsers share cookies among the ports of a host
	session string
	used    func(address string) // called when an address was opened, with the next one

	mu    sync.Mutex
	token string // valid once
}

// newGuard guards the console of a listener's address.
func newGuard(address string, used func(string)) *guard {
	_, port, _ := net.SplitHostPort(address)
	g := &guard{cookie: "runlens-console-" + port, session: rand.Text(), token: rand.Text(), used: used}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		g.hosts = append(g.hosts, net.JoinHostPort(host, port))
	}
	if !slices.Contains(g.hosts, address) {
		g.hosts = append(g.hosts, address)
	}
	return g
}

// secret is a query parameter that opens the console once.
const secret = "token"

// take exchanges the token for a session, once. It returns the next token.
func (g *guard) take(token string) (next string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return "", false
	}
	g.token = rand.Text()
	return g.token, true
}

func (g *guard) current() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.token
}

// protect keeps everybody else out: pages of other sites by the Host (a name of theirs may lead to this address) and
// by the cookie, which browsers send for no other site; other users of the machine by the cookie's value.
func (g *guard) protect(next http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		site := r.Header.Get("Sec-Fetch-Site")
		foreign := site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
		switch {
		case !slices.Contains(g.hosts, r.Host):
			http.Error(w, "this is not an address of the console", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the console only reads", http.StatusMethodNotAllowed)
		case foreign:
			http.Error(w, "the console answers its own pages only", http.StatusForbidden)
		case r.URL.Path == "/" && r.URL.Query().Has(secret):
			g.open(w, r, refuse)
		case !g.known(r) && !strings.HasPrefix(r.URL.Path, "/assets/"): // files that everybody can read elsewhere
			refuse(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (g *guard) known(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(g.session)) == 1
}

// open answers the printed address: it leads to the console, and is of no use to anybody afterwards.
func (g *guard) open(w http.ResponseWriter, r *http.Request, refuse http.HandlerFunc) {
	next, ok := g.take(r.URL.Query().Get(secret))
	switch {
	case ok:
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		g.used(next)
	case !g.known(r):
		refuse(w, r)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
