package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
)

// A link shows one dashboard to others until it ends, and nothing else: not after it was changed, with another key, or
// of another dashboard.
func consoleSharing(t *testing.T, o office) {
	t.Parallel()
	var later atomic.Int64
	var full atomic.Bool
	files := map[string]string{}
	for name, content := range map[string]string{
		"shown": "title: For all\nlast: 11d\npanels:\n- question: {metrics: [run_count], dimensions: [user_identifier]}\n" +
			"- question: {metrics: [run_count], dimensions: [day], filter: [user_type=external]}\n" +
			"- question: {metrics: [run_count], dimensions: [day]}\n",
		"secret": "title: Mine\npanels:\n- question: {metrics: [run_count]}\n",
	} {
		files[name] = filepath.Join(t.TempDir(), name+".yaml")
		must(t, os.WriteFile(files[name], []byte(content), 0o600))
	}
	server := httptest.NewUnstartedServer(nil)
	address := "http://" + server.Listener.Addr().String()
	admit := func(time.Time) bool { return !full.Load() }
	share := &console.Share{URL: address, Secret: []byte("of the key"), Admit: admit}
	config := console.Config{Dashboards: []string{files["secret"], files["shown"]}, Share: share,
		Now: func() time.Time { return consoleNow.Add(time.Duration(later.Load())) }}
	d := o.console(t, "sharing", config)
	d.open(d.base + "/dashboard?file=" + url.QueryEscape(files["shown"]))
	d.do(clickOn("#share > summary"))
	d.click("#share button")
	d.shows("#share [role=status]", "Whoever has this link sees this dashboard, and nothing else, until "+
		"22 Jan 2026, 15:00 UTC.")
	d.accessible("a link")
	link := d.text(`document.querySelector("#share pre").textContent`)
	token, ours := strings.CutPrefix(link, address+"/share/")
	if !ours {
		t.Fatalf("the link is %s", link)
	}

	// The console was started again in between: only the secret is the same.
	again := d.config
	restarted := *share
	again.Share = &restarted
	pages, err := console.New(t.Context(), again)
	must(t, err)
	server.Config.Handler = pages.Shared(server.Listener.Addr().String())
	server.Start()
	t.Cleanup(server.Close)
	d.do(navigate(link))
	d.until(`document.querySelectorAll(".panel .asof").length === 3`)
	d.shows("h1", "For all")
	d.shows("#panel-0 svg g", "ada@x.example 4")
	d.shows("#panel-1 .empty", "Nothing was counted from 5 Jan 2026 to 15 Jan 2026 with these filters.")
	d.until(`document.querySelector("#panel-2 [data-chart] canvas") !== null`)
	d.accessible("a shared dashboard")
	if got := d.text(`document.querySelectorAll("a:not(.skip), form, select, #share, #save").length`); got != "0" {
		t.Errorf("a shared page has %s elements that lead elsewhere", got)
	}
	page := d.text("document.documentElement.outerHTML + document.cookie")
	for _, never := range []string{d.desk.key, files["shown"], filepath.Dir(files["shown"]), "explore", "Mine"} {
		if strings.Contains(page, never) {
			t.Errorf("a shared page has %s", never)
		}
	}

	get := func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, address, nil)
		r.URL = &url.URL{Path: path}
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		for _, c := range change {
			c(r)
		}
		w := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(w, r)
		if body := w.Body.String(); strings.Contains(body, d.desk.key) || strings.Contains(body, files["shown"]) ||
			w.Code != http.StatusOK && (strings.Contains(body, "For all") || strings.Contains(body, "evil")) {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
		return w
	}
	flipped := func(i int) string {
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		return token[:i] + string(other) + token[i+1:]
	}
	otherKey := *share
	otherKey.Secret = []byte("of another key")
	for _, q := range []struct {
		path string
		want int
	}{
		{"/share/" + token, 200}, {"/share/" + token + "/0", 200},
		{"/share/" + flipped(3), 404}, {"/share/" + flipped(20), 404}, {"/share/" + flipped(40), 404},
		{"/share/" + flipped(len(token)-1), 404}, {"/share/" + token[:len(token)-1], 404}, {"/share/" + token + "A", 404},
		{"/share/" + token + "=", 404}, {"/share/", 404}, {"/share/AAAA", 404},
		{"/share/" + token + "/3", 404}, {"/share/" + token + "/00", 404}, {"/share/" + token + "/-1", 404},
		{"/share/" + token + "/0/", 404}, {"/share/" + token + "/../" + token + "/..", 307},
		{"/share/" + token + "?period=last%3D30d", 404}, {"/share/" + token + "/0?timezone=Asia/Tokyo", 404},
		{"/share/" + token + "/0?file=" + files["secret"], 404},
		{"/", 404}, {"/explore", 404}, {"/dashboard?file=" + files["shown"], 404}, {"/operator", 404}, {"/download", 404},
		{"/assets/../share.go", 307}, {"/assets/console.js", 200}, {"/assets/", 404}, {"/templates/save.html", 404},
	} {
		if w := get(q.path); w.Code != q.want || w.Header().Get("Referrer-Policy") != "no-referrer" ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, want %d; %v", q.path, w.Code, q.want, w.Header())
		}
	}
	for want, change := range map[int]func(*http.Request){
		http.StatusMisdirectedRequest: func(r *http.Request) { r.Host = "evil.example" },
		http.StatusMethodNotAllowed:   func(r *http.Request) { r.Method = http.MethodPost },
	} {
		if w := get("/share/"+token, change); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
	full.Store(true)
	if w := get("/share/" + token); w.Code != http.StatusTooManyRequests {
		t.Errorf("too many requests: %d", w.Code)
	}
	if w := get("/share/AAAA"); w.Code != http.StatusNotFound { // takes nobody's place
		t.Errorf("a stranger among too many requests: %d", w.Code)
	}
	full.Store(false)

	again.Share = &otherKey
	if pages, err = console.New(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	mine := server.Config.Handler
	server.Config.Handler = pages.Shared(server.Listener.Addr().String())
	if w := get("/share/" + token); w.Code != http.StatusNotFound {
		t.Errorf("with another key: %d", w.Code)
	}
	server.Config.Handler = mine

	// A key that was revoked shows nothing any longer, also of what was answered before.
	d.unknown.Store(true)
	later.Store(int64(10 * time.Second))
	for _, path := range []string{"", "/0"} {
		if w := get("/share/" + token + path); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "ada@") {
			t.Errorf("revoked: %d %s", w.Code, w.Body)
		}
	}
	d.unknown.Store(false)
	for after, want := range map[time.Duration]int{7*24*time.Hour - time.Second: 200, 7 * 24 * time.Hour: 410} {
		later.Store(int64(after))
		if w := get("/share/" + token); w.Code != want {
			t.Errorf("after %v: %d, want %d", after, w.Code, want)
		}
	}
	later.Store(0)
	must(t, os.Remove(files["shown"]))
	if w := get("/share/" + token); w.Code != http.StatusNotFound {
		t.Errorf("a dashboard that is gone: %d", w.Code)
	}
}
