package console

import (
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// policy is the Content-Security-Policy of every page: scripts and styles are files of the console, and nothing else
// is loaded or sent anywhere. A picture may be one that the page has made, for a download.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const (
	// sessionIdle is how long a session lasts without a request, and sessionLife with them. A dashboard that is asked
	// again by itself sends requests.
	sessionIdle = time.Hour
	sessionLife = 24 * time.Hour
	// maxAddress is how long the question of an address may be, in bytes, inclusive. All links of a page repeat it.
	maxAddress = 4 << 10
	// maxForm is how long what a page sends to be kept may be, in bytes, inclusive.
	maxForm = 2 * maxAddress
	// cookieName is that of every session's cookie.
	cookieName = "runlens-console"
)

// changes are the paths of a session that take POST: they write files of the person's own.
var changes = []string{"/save", "/link"}

// A guard lets only browsers in that have opened a printed address. Each gets pages below a path of its own that
// nobody can guess. Browsers send a cookie to all ports of a host, and so to other users of this machine, but only to
// addresses below its path. Others don't know it: pages tell it to nobody (policy, Referrer-Policy).
type guard struct {
	hosts []string             // host:port as the browser may name this console
	used  func(address string) // called when an address was opened, with the next one
	now   func() time.Time

	mu       sync.Mutex
	token    string              // valid once
	sessions map[string]*session // by the first element of the paths of its pages
}

type session struct {
	secret       string // of the cookie
	opened, seen time.Time
}

// newGuard guards the console of a listener's address.
func newGuard(address string, now func() time.Time, used func(string)) *guard {
	return &guard{token: rand.Text(), sessions: make(map[string]*session), used: used, now: now,
		hosts: loopbackNames(address)}
}

// loopbackNames are the names, with the port, that a browser may give to a loopback address. It leaves out port 80.
func loopbackNames(address string) (names []string) {
	own, port, _ := net.SplitHostPort(address)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", own} {
		name := net.JoinHostPort(host, port)
		if names = append(names, name); port == "80" {
			names = append(names, strings.TrimSuffix(name, ":80"))
		}
	}
	return names
}

// secret is a query parameter that opens the console once.
const secret = "token"

// take exchanges the token for a session, once. It returns the next token, the session's path and its cookie's value.
func (g *guard) take(token string) (next, path, cookie string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return "", "", "", false
	}
	now := g.now()
	maps.DeleteFunc(g.sessions, func(_ string, s *session) bool { return s.ended(now) })
	s := &session{secret: rand.Text(), opened: now, seen: now}
	path, g.token = rand.Text(), rand.Text()
	g.sessions[path] = s
	return g.token, path, s.secret, true
}

func (g *guard) current() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.token
}

// ended compares clocks on the wall: a computer that sleeps has other ones that stand still.
func (s *session) ended(now time.Time) bool {
	now = now.Round(0)
	return now.Sub(s.seen) >= sessionIdle || now.Sub(s.opened) >= sessionLife
}

// protect keeps everybody else out: pages of other sites by the Host (a name of theirs may lead to this address) and
// by the cookie, which browsers send for no other site; other users of the machine by the path and the cookie's value.
// What changes something is taken from the console's own pages only. next sees paths without the session's element.
func (g *guard) protect(next http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		site := r.Header.Get("Sec-Fetch-Site")
		foreign := site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		switch {
		case !slices.Contains(g.hosts, r.Host):
			http.Error(w, "this is not an address of the console", http.StatusMisdirectedRequest)
		case !reads && !(r.Method == http.MethodPost && slices.Contains(changes, below(r))):
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this address only reads", http.StatusMethodNotAllowed)
		case foreign || http.NewCrossOriginProtection().Check(r) != nil:
			http.Error(w, "the console answers its own pages only", http.StatusForbidden)
		case len(r.URL.RawQuery) > maxAddress:
			http.Error(w, "this question is too long for an address; it needs fewer filters", http.StatusRequestURITooLong)
		case r.URL.Path == "/" && r.URL.Query().Has(secret):
			g.open(w, r, refuse)
		case strings.HasPrefix(r.URL.Path, "/assets/"): // files that everybody can read elsewhere
			next.ServeHTTP(w, r)
		case !g.known(r):
			refuse(w, r)
		default:
			path, _, _ := strings.Cut(r.URL.Path[1:], "/")
			http.StripPrefix("/"+path, next).ServeHTTP(w, r)
		}
	})
}

// setPolicy sets the headers of every answer.
func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// below is the request's path without the session's element.
func below(r *http.Request) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return "/" + path
}

// known reports whether the request is one of a session that lasts, which it extends.
func (g *guard) known(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.session(r)
	if s == nil {
		return false
	}
	for _, cookie := range r.CookiesNamed(cookieName) { // others may have set some of this name
		if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.secret)) == 1 {
			s.seen = g.now()
			return true
		}
	}
	return false
}

// session is the one whose path the request has; nil if it has none of a session that lasts.
func (g *guard) session(r *http.Request) *session {
	path, _, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s := g.sessions[path]
	if !below || s == nil || s.ended(g.now()) {
		return nil
	}
	return s
}

// again is the address of the request where it is a page of a session: a browser sends the cookie if a link of ours
// leads there. It begins with the session's path, and so leads nowhere else. It is empty for all other requests.
func (g *guard) again(r *http.Request) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session(r) == nil {
		return ""
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}).String()
}

// open answers the printed address: it leads to the console, and is of no use to anybody afterwards.
func (g *guard) open(w http.ResponseWriter, r *http.Request, refuse http.HandlerFunc) {
	next, path, value, ok := g.take(r.URL.Query().Get(secret))
	if !ok {
		refuse(w, r)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/" + path + "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	g.used(next)
	http.Redirect(w, r, "/"+path+"/", http.StatusSeeOther)
}
