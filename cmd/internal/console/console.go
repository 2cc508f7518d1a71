// Package console shows an organization's numbers in a browser on the same machine. It is a client of the API: it asks
// a runlens server with a key that never reaches the browser. On disk it keeps what a person saves: questions and
// dashboards (save.go, addpanel.go). A dashboard can be shared by a link, which another listener answers (share.go).
//
// A look (look.go) is a question with the way it is shown, and its address holds all of it. show.go turns it into
// questions of http/client/report, ask.go asks them, and chart.go, table.go and page.go make what the templates show.
package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/cache"
)

// Config says whose numbers a console shows. Client and Now are required.
type Config struct {
	Client     *client.Client
	Home       profile.Folder   // of saved questions and dashboards
	Now        func() time.Time // decides which day is today
	Dashboards []string         // files, besides those of Home; the first one is the first page
	Waits      *Waits           // of the client; nil for a client that does not wait
	Admin      []Admin          // of servers and workers; none without the operator's page
	Share      *Share           // nil without links for others
}

// A Console answers the pages. Make it with New.
type Console struct {
	Config
	asking    cache.Group[*answer]
	answers   *cache.Cache[*answer]
	lastShown *cache.Cache[*shown]
	names     *cache.Cache[string] // of dimension values, by member and identifier, and the other way round
	learning  sync.Mutex           // of names
	asks      chan struct{}        // holds a mark while a question is asked

	saving sync.Mutex // a file is read and written

	keyAsked sync.Mutex
	keySaid  time.Time // when the server was asked whether it takes the key
	keyValid bool

	mu      sync.Mutex
	catalog *client.Catalog
}

//go:embed templates assets
var files embed.FS

// New reads the catalog, of which the pages are made. The error is one line that says what to do.
func New(ctx context.Context, config Config) (*Console, error) {
	c := &Console{Config: config, answers: cache.New[*answer](keptAnswers, keptFor),
		lastShown: cache.New[*shown](keptAnswers, keptFor),
		names:     cache.New[string](keptNames, keptFor), asks: make(chan struct{}, atOnce)}
	catalog, err := config.Client.Catalog(ctx)
	if err != nil {
		line, _ := explain.Refusal(ctx, err, client.Query{}, config.Client.Catalog)
		return nil, errors.New(line)
	}
	if len(catalog.Models) == 0 {
		return nil, errors.New("the catalog has no models")
	}
	c.catalog, c.keyValid, c.keySaid = catalog, true, c.Now()
	for _, file := range config.Dashboards {
		if _, err := c.readDashboard(file); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// model is a model of the catalog, the first one for a name that it does not have.
func (c *Console) model(name string) client.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := members.ModelOf(c.catalog, name); m.Name != "" {
		return m
	}
	return c.catalog.Models[0]
}

// Handler answers the browser that opens the address that First returns, and nobody else. address is the
// listener's. used is called when such an address was opened, with the next one: each is valid once.
func (c *Console) Handler(address string, used func(next string)) (handler http.Handler, first string) {
	open := func(token string) string { return fmt.Sprintf("http://%s/?%s=%s", address, secret, token) }
	g := newGuard(address, c.Now, func(token string) { used(open(token)) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.home)
	mux.HandleFunc("GET /explore", c.explore)
	mux.HandleFunc("GET /answer", c.answerPart)
	mux.HandleFunc("GET /waiting", c.waiting)
	mux.HandleFunc("GET /values", c.values)
	mux.HandleFunc("GET /zones", c.zones)
	mux.HandleFunc("GET /download", c.download)
	mux.HandleFunc("GET /dashboard", c.dashboard)
	mux.HandleFunc("GET /panel", c.panel)
	mux.HandleFunc("POST /save", c.save)
	mux.HandleFunc("POST /link", c.link)
	mux.HandleFunc("GET /operator", c.operator)
	mux.HandleFunc("GET /operator/status", c.operatorStatus)
	mux.HandleFunc("GET /operator/usage", c.operatorUsage)
	mux.HandleFunc("GET /operator/explain", c.operatorExplain)
	mux.HandleFunc("GET /assets/", asset)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.failure(w, r, http.StatusNotFound, "There is no page here.")
	})
	refuse := func(w http.ResponseWriter, r *http.Request) { c.signIn(w, g.again(r)) }
	return gzhttp.GzipHandler(g.protect(mux, refuse)), open(g.current())
}

// assetTypes are the files that browsers may load.
var assetTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

// asset answers a file of the console. Its address has the console's version, so that a browser may keep it.
func asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	content, err := files.ReadFile(name)
	kind := assetTypes[path.Ext(name)]
	if err != nil || kind == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	w.Write(content)
}
