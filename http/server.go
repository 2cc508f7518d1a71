// Package httpapi is the HTTP API: routes, the order of checks, the error envelope and the headers
// of the specification. It is imported by that name always: a package called http would hide net/http.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

const (
	catalogPath = "/api/v1/analytics/catalog"
	queryPath   = "/api/v1/analytics/query"

	nameOther = "other" // every method and path that is none of ours, or could not be read

	// RateWindow is the span of the per-key rate (spec section 8).
	RateWindow = time.Minute

	// Of a whole request, and of an answer; package conns ends slow clients long before.
	readTimeout    = time.Minute
	writeTimeout   = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// An Engine answers queries, as *olap.Engine does.
type Engine interface {
	Run(ctx context.Context, r olap.Request) (*olap.Result, error)
}

// A Verifier finds whose credential a caller sent, as auth.Verifiers does.
type Verifier interface {
	Verify(ctx context.Context, c auth.Credential, from netip.Addr) (auth.Principal, error)
}

// Config is what a server depends on. Every field but Metrics, Tracer, Usage, Rates, Cells, CellOf and
// TrustedProxies is required, and one of Engine and Push is enough.
type Config struct {
	Engine   Engine      // nil to answer no questions
	Push     *PushConfig // nil to take no records
	Verifier Verifier
	Logger   *slog.Logger
	Metrics  *Metrics     // nil for none
	Tracer   trace.Tracer // of requests
	// Usage records a question with a valid key when it is answered or refused; nil for nobody. It returns at once.
	Usage func(usage.Entry)

	// Rates has the rates of keys by their ids, of RatePerMinute in RateWindow; nil for rates of this server alone.
	Rates limit.Rates

	RatePerMinute     int           // requests of one key in any 60 seconds
	OrgConcurrency    int           // queries of one organization at once
	GlobalConcurrency int           // queries at once, in each cell
	MaxBodyBytes      int           // inclusive
	BodyBytes         int64         // of all bodies being received, beyond freeBodyBytes of each; inclusive
	QueryTimeout      time.Duration // of one request's work, from the end of its body to its answer

	// Cells is the number of cells that Engine answers from, and CellOf which of them has an organization, from 0. The
	// queries of one take nobody's place in another. 0 and nil for one.
	Cells  int
	CellOf func(schema.OrganizationID) int

	TrustedProxies []netip.Prefix // whose X-Forwarded-For says where a request comes from
}

// A Server answers the API. Make it with New.
type Server struct {
	Config
	app         *fiber.App
	concurrency []*limit.Concurrency // by cell
	bodies      limit.Share
	large       chan struct{} // held while a body beyond freeBodyBytes is parsed
	refused     *refusalLog
	catalog     []byte
	catalogTag  string // weak: it stands for the catalog in every content coding
	documents   map[string]*document
	docs        docsLimit
}

// New returns a server that does not listen yet.
func New(config Config) (*Server, error) {
	document, err := catalog.Document()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config:     config,
		bodies:     limit.NewShares(config.BodyBytes, config.BodyBytes).Of(""),
		large:      make(chan struct{}, runtime.GOMAXPROCS(0)),
		refused:    newRefusalLog(config.Logger),
		catalog:    document,
		catalogTag: weakTag(document),
		docs:       newDocsLimit(),
	}
	for range max(config.Cells, 1) {
		s.concurrency = append(s.concurrency, limit.NewConcurrency(config.OrgConcurrency, config.GlobalConcurrency))
	}
	if s.Metrics == nil {
		s.Metrics = NewMetrics()
	}
	if s.Rates == nil {
		s.Rates = limit.NewKeyed(config.RatePerMinute, RateWindow)
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "runlens",
		DisableStartupMessage: true,
		StrictRouting:         true,
		CaseSensitive:         true,
		// What handlers keep of a request, in logs and limits, must survive the request.
		Immutable: true,
		// The handler itself reads bodies, within bounds for all of them together. A form would be read
		// before any handler, into memory and temporary files.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    max(config.MaxBodyBytes, push.MaxBytes),
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		ReadBufferSize:               maxHeaderBytes,
		ErrorHandler:                 s.refuseUnread,
	})
	s.app.Use(s.observe)
	if config.Engine != nil {
		s.app.Get(catalogPath, s.getCatalog)
		s.app.Post(queryPath, s.runQuery)
	}
	if config.Push != nil {
		s.app.Post(recordsPath, s.pushRecords)
	}
	return s, s.routeDocs()
}

// concurrencyOf is what runs at once in the cell of an organization.
func (s *Server) concurrencyOf(organization schema.OrganizationID) *limit.Concurrency {
	if s.CellOf == nil {
		return s.concurrency[0]
	}
	return s.concurrency[s.CellOf(organization)]
}

// Serve answers requests from a listener until Shutdown. A listener of package conns also bounds the
// connections, and lets clients have the answers to requests that were not read to their end.
func (s *Server) Serve(listener net.Listener) error {
	handle := s.app.Handler()
	s.app.Server().Handler = func(request *fasthttp.RequestCtx) {
		f, err := framingOf(&request.Request.Header)
		switch {
		case err != nil:
			err = malformed(err.Error())
		case !slices.Contains(fiber.DefaultMethods, string(request.Method())):
			// Fiber would answer a method that it does not know with a text of its own.
			err = s.unknownMethod(request)
		}
		if err != nil {
			c := s.app.AcquireCtx(request)
			defer s.app.ReleaseCtx(c)
			_ = s.refuseEarly(c, &exchange{refusal: refusalOf(err)}) // sending to memory cannot fail
			return
		}
		joinLists(&request.Request.Header)
		x := &exchange{framing: f}
		request.SetUserValue(exchangeKey{}, x)
		handle(request)
		if f.chunked || f.length > 0 && !x.bodyEnded {
			closeUnread(request)
		}
	}
	return s.app.Listener(listener)
}

// unknownMethod refuses a request by its path, and says which methods that has.
func (s *Server) unknownMethod(request *fasthttp.RequestCtx) error {
	var methods []string
	for _, route := range s.app.GetRoutes(true) {
		if route.Path == string(request.Path()) {
			methods = append(methods, route.Method)
		}
	}
	if methods == nil {
		return refuse(codeNotFound)
	}
	request.Response.Header.Set(fiber.HeaderAllow, strings.Join(methods, ", "))
	return refuse(codeMethodNotAllowed)
}

// nameOf is what metrics, logs and traces call a request.
func (s *Server) nameOf(c *fiber.Ctx, x *exchange) (method, route string) {
	if x.unread {
		return nameOther, nameOther
	}
	if method = c.Method(); !slices.Contains(fiber.DefaultMethods, method) {
		method = nameOther
	}
	return method, s.routeOf(c.Path())
}

func (s *Server) routeOf(path string) string {
	if s.Engine != nil && (path == catalogPath || path == queryPath) || s.Push != nil && path == recordsPath {
		return path
	}
	if s.documents[path] != nil || docsMoved[path] != "" {
		return docsPath
	}
	return nameOther
}

// Shutdown stops listening and returns when the requests in flight are answered, or when ctx is done.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.refused.close()
	err := s.app.ShutdownWithContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("requests were still in flight when the time to drain was over")
	}
	return err
}
