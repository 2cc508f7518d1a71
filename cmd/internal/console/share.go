package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/runlens/runlens/http/client"
)

const (
	// keyKnown is how long the key is taken for valid after the server has said so. A key that was revoked shows nothing
	// to others after that.
	keyKnown = 10 * time.Second
	// askKey is how long the server is waited for.
	askKey = 5 * time.Second
	// noAnswer is all that others read of a failure. Its reason is the owner's.
	noAnswer = "The numbers can't be shown now."
)

// Shared answers the links that the pages of dashboards make, and nothing else: one dashboard as its file is, over its
// own period, without anything that leads elsewhere. It is for a listener of its own. address is the listener's.
func (c *Console) Shared(address string) http.Handler {
	hosts := namesOf(address)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /share/{token}", c.sharedBoard)
	mux.HandleFunc("GET /share/{token}/{panel}", c.sharedPanel)
	mux.HandleFunc("GET /assets/", asset)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { c.noLink(w, http.StatusNotFound, errNoLink) })
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		switch {
		case len(hosts) > 0 && !slices.Contains(hosts, r.Host):
			http.Error(w, "this is not an address of runlens", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this address only reads", http.StatusMethodNotAllowed)
		case r.URL.RawQuery != "" && !strings.HasPrefix(r.URL.Path, "/assets/"): // no link has one
			c.noLink(w, http.StatusNotFound, errNoLink)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
}

// namesOf are the hosts that a request to a loopback address may name; none for other addresses, which may have any
// name. No answer has the name that a request gave.
func namesOf(address string) []string {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil
	}
	return loopbackNames(address)
}

// linked is the dashboard of a request's link. Where there is none it has answered why.
func (c *Console) linked(w http.ResponseWriter, r *http.Request) *dashboard {
	board, err := c.Share.read(r.PathValue("token"), c.Now())
	switch {
	case errors.Is(err, errExpired):
		c.noLink(w, http.StatusGone, err)
		return nil
	case err != nil:
		c.noLink(w, http.StatusNotFound, err)
		return nil
	case !c.Share.Admit(c.Now()):
		w.Header().Set("Retry-After", "1")
		c.noLink(w, http.StatusTooManyRequests, errors.New("too many people look at once; try again in a moment"))
		return nil
	}
	all, _ := c.dashboards()
	at := slices.IndexFunc(all, func(d *dashboard) bool { return bytes.Equal(c.Share.board(d.file), board) })
	if at < 0 || !c.keyHolds(r.Context()) {
		c.noLink(w, http.StatusNotFound, errNoLink)
		return nil
	}
	return all[at]
}

// keyHolds reports whether the server takes the key, as of keyKnown ago at most. A server that does not answer says
// nothing about it.
func (c *Console) keyHolds(ctx context.Context) bool {
	c.keyAsked.Lock()
	defer c.keyAsked.Unlock()
	if c.Now().Sub(c.keySaid) < keyKnown {
		return c.keyValid
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askKey) // others wait for it too
	defer cancel()
	_, err := c.Client.Catalog(ctx)
	var refused *client.Error
	switch {
	case err == nil:
		c.keyValid = true
	case errors.As(err, &refused):
		c.keyValid = c.keyValid && refused.Status != http.StatusUnauthorized && refused.Status != http.StatusForbidden
	}
	c.keySaid = c.Now()
	return c.keyValid
}

func (c *Console) noLink(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	c.render(w, "nolink.html", page{Title: capital(err.Error()) + "."})
}

func (c *Console) sharedBoard(w http.ResponseWriter, r *http.Request) {
	d := c.linked(w, r)
	if d == nil {
		return
	}
	board := d.view(d.looks(nil), c.Now())
	board.Shared = true
	for i := range board.Panels {
		board.Panels[i].Address = fmt.Sprintf("%s/%d", r.PathValue("token"), i)
	}
	c.render(w, "dashboard.html", page{Title: d.Title, Board: board})
}

func (c *Console) sharedPanel(w http.ResponseWriter, r *http.Request) {
	d := c.linked(w, r)
	if d == nil {
		return
	}
	if d.saidElse(w, r, d.looks(nil), c.Now()) {
		return
	}
	n := slices.IndexFunc(panelNames[:len(d.Panels)], func(name string) bool { return name == r.PathValue("panel") })
	if n < 0 {
		c.noLink(w, http.StatusNotFound, errNoLink)
		return
	}
	v := c.panelView(r.Context(), d, n, d.Panels[n].look)
	if v == nil {
		return
	}
	if v.Refused != nil {
		v.Refused = &refusal{line: noAnswer}
	}
	if v.Stale != nil {
		v.Stale = &refusal{line: noAnswer}
	}
	c.render(w, "panel", v.alone())
}

// panelNames are the panels of a dashboard in addresses of links: one name each.
var panelNames = func() (names []string) {
	for i := range maxPanels {
		names = append(names, fmt.Sprint(i))
	}
	return names
}()
