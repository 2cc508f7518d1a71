package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit/shared"
	"github.com/runlens/runlens/schema"
)

// verifyWindow is the span of the global verification limit (contract 2).
const verifyWindow = time.Minute

// An app is a whole running server: stores, API and admin address. Tests start it as serve does.
type app struct {
	placed      *placed
	cells       []*cell // in the order of placed
	api         *listening
	ingest      *listening        // nil where the API's address takes records
	redis       *shared.Store     // nil where limits are this server's alone
	certificate *certificateFiles // nil without TLS
	endTracing  func()
	failed      chan error

	background sync.WaitGroup
	stop       context.CancelFunc // of what runs in the background

	admin *admin.Server // nil when the admin address is off
}

// startApp returns once requests are accepted.
func startApp(ctx context.Context, c serveCmd, logger *slog.Logger) (*app, error) {
	a := &app{failed: make(chan error, 3), endTracing: func() {}}
	if err := a.start(ctx, c, logger); err != nil {
		closed := make(chan error, 1)
		go func() { closed <- a.Close(context.Background()) }()
		select {
		case <-closed:
		case <-time.After(closePatience):
		}
		return nil, err
	}
	return a, nil
}

func (a *app) start(ctx context.Context, c serveCmd, logger *slog.Logger) (err error) {
	secrets, err := c.cursorSecrets()
	if err != nil {
		return err
	}
	proxies, err := parseNetworks(c.TrustedProxies)
	if err != nil {
		return err
	}
	tracer, endTracing, err := openTracing(ctx, "runlens-serve", logger)
	if err != nil {
		return err
	}
	a.endTracing = endTracing
	// The addresses come first: a port that is taken should not cost the start of an engine.
	if err := a.listen(ctx, c, logger); err != nil {
		return err
	}
	if a.redis, err = c.redisFlags.open(logger); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	a.stop = stop
	if a.certificate != nil {
		a.background.Go(func() { a.certificate.follow(background) })
	}
	if a.redis != nil {
		a.background.Go(func() { a.redis.Follow(background) })
	}
	c.queries = c.GlobalConcurrency
	budget, rates := c.windows(a.redis)
	served, err := a.openStores(ctx, background, c, secrets, budget, logger)
	if err != nil {
		return err
	}
	return a.serve(c, served, httpapi.Config{
		Engine: served, Verifier: served.verifiers(), Logger: logger, Metrics: httpapi.NewMetrics(), Tracer: tracer,
		Usage:         served.record,
		RatePerMinute: c.RateLimitPerMinute, OrgConcurrency: c.OrgConcurrency, GlobalConcurrency: a.queriesAtOnce(c),
		Cells: len(a.cells), CellOf: func(o schema.OrganizationID) int { return max(served.of(o), 0) },
		MaxBodyBytes: c.MaxBodyBytes, BodyBytes: max(bodyBytes, int64(c.MaxBodyBytes)),
		QueryTimeout: c.QueryTimeout, TrustedProxies: proxies, Rates: rates,
	})
}

// listen opens all addresses. Nothing is accepted yet.
func (a *app) listen(ctx context.Context, c serveCmd, logger *slog.Logger) (err error) {
	openAPI := func(context.Context) (*listening, error) { return c.listen("--listen", c.Listen, logger) }
	closeAPI := func(late *listening) { late.close(ctx) }
	if a.api, err = within(ctx, openAddresses, closeAPI, openAPI); err != nil {
		return err
	}
	if c.TLSCert != "" {
		if a.certificate, err = openCertificate(c.TLSCert, c.TLSKey, logger); err != nil {
			return err
		}
	}
	if c.IngestListen != "" {
		if a.ingest, err = c.listen("--ingest-listen", c.IngestListen, logger); err != nil {
			return err
		}
	}
	openAdmin := func(context.Context) (*admin.Server, error) {
		return c.adminFlags.open(c.AdminListen, c.DataDir, logger)
	}
	closeAdmin := func(late *admin.Server) {
		if late != nil {
			late.Close()
		}
	}
	a.admin, err = within(ctx, openAddresses, closeAdmin, openAdmin)
	return err
}

// openStores opens the cells, as openCells says.
func (a *app) openStores(ctx, background context.Context, c serveCmd, secrets [][]byte, budget auth.Budget,
	logger *slog.Logger) (served servedCells, err error) {
	if a.placed, err = c.place(ctx, logger); err != nil {
		return served, err
	}
	of := a.placed.index()
	for _, name := range a.placed.names {
		settings := c
		settings.storeFlags = a.placed.flags[name]
		cache := c.AnswerCacheMiB << 20 / len(a.placed.names)
		a.cells = append(a.cells, newCell(name, settings, secrets, cache, budget, logger))
	}
	if err := a.openCells(ctx, background); err != nil {
		return served, err
	}
	a.placed.Close()
	return servedCells{a.cells, of}, nil
}

// serve answers at the addresses.
func (a *app) serve(c serveCmd, served servedCells, config httpapi.Config) (err error) {
	records, logger := c.pushFlags.config(served), config.Logger
	if a.ingest == nil {
		config.Push = records
	}
	if err = a.api.start(config, a.certificate, a.failed); err != nil {
		return err
	}
	logger.Info("serving the API", "address", a.Address(), "tls", c.TLSCert != "")
	if a.ingest != nil {
		config.Push, config.Engine, config.Usage = records, nil, nil
		if err = a.ingest.start(config, a.certificate, a.failed); err != nil {
			return err
		}
		logger.Info("taking records", "address", a.ingest.address())
	}
	if a.admin != nil {
		operator := &operatorAPI{served: served, queryTimeout: c.QueryTimeout, maxBodyBytes: c.MaxBodyBytes, logger: logger}
		content := a.adminContent(operator, config.Metrics, pushMemory(records.Memory))
		a.admin.Start(content, func(err error) { a.failed <- err })
	}
	return nil
}

// adminContent is what the admin address shows of this server.
func (a *app) adminContent(operator *operatorAPI, metrics ...prometheus.Collector) admin.Content {
	content := admin.Content{Ready: a.ready, Private: operator.private(),
		Metrics: append(metrics, buildInfo(), a.api.server, a.api.connections)}
	if a.redis != nil {
		content.Metrics = append(content.Metrics, a.redis)
	}
	for _, c := range a.cells {
		content.Metrics = append(content.Metrics, c.collector())
	}
	return content
}

// Address is the API's address as clients reach it.
func (a *app) Address() string { return a.api.address() }

// Failed delivers the error of a listener that ended by itself.
func (a *app) Failed() <-chan error { return a.failed }

// Close finishes the requests in flight, until ctx is done, and leaves the store.
func (a *app) Close(ctx context.Context) error {
	var failures []error
	ingest := make(chan error, 1)
	go func() { ingest <- a.ingest.close(ctx) }()
	failures = append(failures, a.api.close(ctx), <-ingest)
	a.endTracing()
	if a.admin != nil {
		failures = append(failures, a.admin.Close())
	}
	if a.stop != nil {
		a.stop()
		a.background.Wait()
	}
	if a.redis != nil {
		failures = append(failures, a.redis.Close())
	}
	for _, c := range a.cells {
		failures = append(failures, c.close())
	}
	if a.placed != nil {
		a.placed.Close()
	}
	return errors.Join(failures...)
}

func endsWithPortZero(address string) bool { return strings.HasSuffix(address, ":0") }
