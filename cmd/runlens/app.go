package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/settle"
	"github.com/runlens/runlens/schema"
)

// verifyWindow is the span of the global verification limit (contract 2).
const verifyWindow = time.Minute

// An app is a whole running server: store, API and admin address. Tests start it as serve does.
type app struct {
	store    *clickhouse.Server
	api      *httpapi.Server
	listener net.Listener
	failed   chan error

	maintenance []*maintain.Worker
	maintained  sync.WaitGroup
	stop        context.CancelFunc // of what is maintained

	admin         *http.Server
	adminListener net.Listener // nil when the admin address is off
}

// startApp returns once requests are accepted.
func startApp(ctx context.Context, c serveCmd, logger *slog.Logger) (*app, error) {
	a := &app{failed: make(chan error, 2)}
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
	// The addresses come first: a port that is taken should not cost the start of an engine.
	open := func(listen func(serveCmd) (net.Listener, error)) (net.Listener, error) {
		return within(ctx, openAddresses, func(late net.Listener) { late.Close() },
			func(context.Context) (net.Listener, error) { return listen(c) })
	}
	if a.listener, err = open(listen); err != nil {
		return err
	}
	if c.AdminListen != "off" {
		if a.adminListener, err = open(listenAdmin); err != nil {
			return err
		}
	}
	if a.store, err = openMigrated(ctx, c.storeFlags, logger); err != nil {
		return err
	}
	conn := a.store.Conn()
	secret := []byte(c.CursorSecret)
	if len(secret) == 0 {
		read := func(ctx context.Context) ([]byte, error) { return olap.CursorSecret(ctx, conn) }
		if secret, err = within(ctx, readingSecret, nil, read); err != nil {
			return err
		}
	}
	verifier := auth.NewVerifier(keys.NewStore(conn), limit.NewWindow(c.VerifyLimit, verifyWindow), time.Now, logger)
	load := func(ctx context.Context) (any, error) { return nil, verifier.Load(ctx) }
	if _, err = within(ctx, readingKeys, nil, load); err != nil {
		return err
	}
	a.maintain(c.MaintenanceShare, logger)
	metrics := httpapi.NewMetrics()
	a.api, err = httpapi.New(httpapi.Config{
		Engine: olap.NewEngine(conn, secret), Verifier: verifier, Logger: logger, Metrics: metrics,
		RatePerMinute: c.RateLimitPerMinute, OrgConcurrency: c.OrgConcurrency, GlobalConcurrency: c.GlobalConcurrency,
		MaxBodyBytes: c.MaxBodyBytes, QueryTimeout: c.QueryTimeout,
	})
	if err != nil {
		return err
	}
	go func() { a.failed <- a.api.Serve(a.listener) }()
	logger.Info("serving the API", "address", a.Address(), "tls", c.TLSCert != "")
	if a.adminListener != nil {
		a.serveAdmin(metrics)
		logger.Info("serving the admin address", "address", a.adminListener.Addr().String())
	}
	return nil
}

const (
	// settleIdle and compactIdle are the pauses of maintenance that finds nothing to do.
	settleIdle  = time.Second
	compactIdle = 15 * time.Second
	// compactQuiet is how long a partition must have been left alone to be merged for a few rows.
	compactQuiet = 20 * time.Second
)

// maintain keeps queries quick as long as the app lives.
func (a *app) maintain(share float64, logger *slog.Logger) {
	if share == 0 {
		return
	}
	conn := a.store.Conn()
	a.maintenance = []*maintain.Worker{
		maintain.New("settle", settle.New(conn, logger, settle.Margin), logger, share/2, settleIdle),
		maintain.New("compact", maintain.NewCompactor(conn, compactQuiet), logger, share/2, compactIdle),
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	for _, worker := range a.maintenance {
		a.maintained.Go(func() { worker.Run(ctx) })
	}
}

// listen opens the API's address, with TLS if a certificate is given.
func listen(c serveCmd) (net.Listener, error) {
	var config *tls.Config
	if c.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener, nil
}

func listenAdmin(c serveCmd) (net.Listener, error) {
	listener, err := net.Listen("tcp", c.AdminListen)
	if err != nil {
		return nil, fmt.Errorf("--admin-listen: %w", err)
	}
	return listener, nil
}

func (a *app) serveAdmin(metrics *httpapi.Metrics) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics, ingestLag{a.store.Conn()},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "runlens_queries_running", Help: "Queries being answered."},
			func() float64 { return float64(a.api.Running()) }))
	for _, worker := range a.maintenance {
		registry.MustRegister(worker)
	}
	a.admin = &http.Server{Handler: admin.Handler(a.ready, registry), ReadHeaderTimeout: 10 * time.Second}
	go func() { a.failed <- a.admin.Serve(a.adminListener) }()
}

// ready says what is missing until requests can be answered.
func (a *app) ready(ctx context.Context) error {
	if err := a.store.Conn().Ping(ctx); err != nil {
		return errors.New("the store does not answer")
	}
	db, err := a.store.DB()
	if err != nil {
		return errors.New("the store does not answer")
	}
	defer db.Close()
	state, err := schema.Status(ctx, db)
	if err != nil {
		return errors.New("the store's migrations cannot be read")
	}
	if !state.Current() {
		return fmt.Errorf("the store has migration %d, this server needs %d", state.Version, state.Latest)
	}
	return nil
}

// Address is the API's address as clients reach it.
func (a *app) Address() string { return a.listener.Addr().String() }

// Failed delivers the error of a listener that ended by itself.
func (a *app) Failed() <-chan error { return a.failed }

// Close finishes the requests in flight, until ctx is done, and leaves the store.
func (a *app) Close(ctx context.Context) error {
	var failures []error
	switch {
	case a.api != nil:
		failures = append(failures, a.api.Shutdown(ctx))
	case a.listener != nil:
		failures = append(failures, a.listener.Close())
	}
	switch {
	case a.admin != nil:
		failures = append(failures, a.admin.Close())
	case a.adminListener != nil:
		failures = append(failures, a.adminListener.Close())
	}
	if a.stop != nil {
		a.stop()
		a.maintained.Wait()
	}
	if a.store != nil {
		failures = append(failures, a.store.Close())
	}
	return errors.Join(failures...)
}

func endsWithPortZero(address string) bool { return strings.HasSuffix(address, ":0") }
