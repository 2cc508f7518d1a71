package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/http/limit/shared"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// verifyWindow is the span of the global verification limit (contract 2).
const verifyWindow = time.Minute

// An app is a whole running server: store, API and admin address. Tests start it as serve does.
type app struct {
	store       *clickhouse.Server
	api         *httpapi.Server
	listener    net.Listener // of the API, over connections
	connections *conns.Listener
	redis       *shared.Store     // nil where limits are this server's alone
	certificate *certificateFiles // nil without TLS
	failed      chan error

	maintenance []*maintain.Worker
	maintained  sync.WaitGroup
	stop        context.CancelFunc // of what runs in the background

	admin *admin.Server // nil when the admin address is off
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
	secrets, err := c.cursorSecrets()
	if err != nil {
		return err
	}
	proxies, err := parseNetworks(c.TrustedProxies)
	if err != nil {
		return err
	}
	// The addresses come first: a port that is taken should not cost the start of an engine.
	listen := func(context.Context) (*conns.Listener, error) { return c.listen(logger) }
	if a.connections, err = within(ctx, openAddresses, func(late *conns.Listener) { late.Close() }, listen); err != nil {
		return err
	}
	if err = a.secure(c, logger); err != nil {
		return err
	}
	closeLate := func(late *admin.Server) {
		if late != nil {
			late.Close()
		}
	}
	openAdmin := func(context.Context) (*admin.Server, error) {
		return c.adminFlags.open(c.AdminListen, c.DataDir, logger)
	}
	if a.admin, err = within(ctx, openAddresses, closeLate, openAdmin); err != nil {
		return err
	}
	c.queries = c.GlobalConcurrency
	if a.store, err = openMigrated(ctx, c.storeFlags, logger); err != nil {
		return err
	}
	fitting := func(ctx context.Context) (int, error) { return c.fitting(ctx, a.store, logger) }
	if c.GlobalConcurrency, err = within(ctx, openingStore, nil, fitting); err != nil {
		return err
	}
	conn := a.store.Conn()
	glanceAt(ctx, a.store, logger)
	kept := len(secrets) == 0
	if kept {
		read := func(ctx context.Context) ([][]byte, error) { return olap.CursorSecrets(ctx, conn) }
		if secrets, err = within(ctx, readingSecret, nil, read); err != nil {
			return err
		}
	}
	if a.redis, err = c.redisFlags.open(logger); err != nil {
		return err
	}
	budget, rates := c.windows(a.redis)
	verifier := auth.NewVerifier(keys.NewStore(conn), budget, time.Now, logger)
	load := func(ctx context.Context) (any, error) { return nil, verifier.Refresh(ctx) }
	if _, err = within(ctx, readingKeys, nil, load); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	a.stop = stop
	if a.certificate != nil {
		a.maintained.Go(func() { a.certificate.follow(background) })
	}
	if a.redis != nil {
		a.maintained.Go(func() { a.redis.Follow(background) })
	}
	engine := olap.NewEngine(conn, secrets...)
	if c.AnswerCacheMiB > 0 {
		engine.CacheAnswers(c.AnswerCacheMiB << 20)
	}
	if kept {
		a.maintained.Go(func() { followCursorSecrets(background, conn, engine, cursorSecretPoll, logger) })
	}
	a.maintained.Go(func() { verifier.Follow(background) })
	a.maintained.Go(func() { engine.Follow(background) })
	a.maintain(background, c.MaintenanceShare, logger)
	asked := usage.NewLog(conn, logger)
	a.maintained.Go(func() { asked.Run(background) })
	metrics := httpapi.NewMetrics()
	a.api, err = httpapi.New(httpapi.Config{
		Engine: engine, Verifier: verifier, Logger: logger, Metrics: metrics, Usage: asked.Record,
		RatePerMinute: c.RateLimitPerMinute, OrgConcurrency: c.OrgConcurrency, GlobalConcurrency: c.GlobalConcurrency,
		MaxBodyBytes: c.MaxBodyBytes, BodyBytes: max(bodyBytes, int64(c.MaxBodyBytes)),
		QueryTimeout: c.QueryTimeout, TrustedProxies: proxies, Rates: rates,
	})
	if err != nil {
		return err
	}
	go func() { a.failed <- a.api.Serve(a.listener) }()
	logger.Info("serving the API", "address", a.Address(), "tls", c.TLSCert != "")
	if a.admin != nil {
		operator := &operatorAPI{conn: conn, engine: engine, queryTimeout: c.QueryTimeout, maxBodyBytes: c.MaxBodyBytes,
			logger: logger}
		a.admin.Start(a.adminContent(operator, metrics, asked), func(err error) { a.failed <- err })
	}
	return nil
}

const (
	// refreshIdle, compactIdle and checkIdle are the pauses of maintenance that finds nothing to do.
	refreshIdle = time.Second
	compactIdle = 15 * time.Second
	checkIdle   = time.Minute
	// compactQuiet is how long a partition must have been left alone to be merged for a few rows.
	compactQuiet = 20 * time.Second
)

// maintain keeps queries quick as long as the app lives.
func (a *app) maintain(ctx context.Context, share float64, logger *slog.Logger) {
	if share == 0 {
		return
	}
	conn := a.store.Conn()
	refresher := rollup.New(conn, logger, rollup.Margin)
	refresher.TakeOutLate(takeOutLate(conn))
	a.maintenance = []*maintain.Worker{
		maintain.New("refresh", refresher, logger, share/2, refreshIdle, conn.Ping),
		maintain.New("compact", maintain.NewCompactor(conn, compactQuiet), logger, share/2, compactIdle, conn.Ping),
		maintain.New("check", rollup.NewChecker(conn, logger), logger, min(share/2, rollup.CheckShare), checkIdle,
			conn.Ping),
	}
	for _, worker := range a.maintenance {
		a.maintained.Go(func() { worker.Run(ctx) })
	}
}

// adminContent is what the admin address shows of this server.
func (a *app) adminContent(operator *operatorAPI, metrics ...prometheus.Collector) admin.Content {
	conn := a.store.Conn()
	content := admin.Content{Ready: a.ready, More: httpapi.Documentation(), Private: operator.private(),
		Metrics: append(metrics, buildInfo(), a.store, a.api, a.connections, snapshot.LagMetric(conn),
			snapshot.DamageMetric(conn))}
	if a.redis != nil {
		content.Metrics = append(content.Metrics, a.redis)
	}
	for _, worker := range a.maintenance {
		content.Metrics = append(content.Metrics, worker)
	}
	return content
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
	if !state.Works() {
		return fmt.Errorf("the store has migration %d and works with binaries from %d on, this one has %d",
			state.Version, state.Oldest, state.Latest)
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
	if a.admin != nil {
		failures = append(failures, a.admin.Close())
	}
	if a.stop != nil {
		a.stop()
		a.maintained.Wait()
	}
	if a.redis != nil {
		failures = append(failures, a.redis.Close())
	}
	if a.store != nil {
		failures = append(failures, a.store.Close())
	}
	return errors.Join(failures...)
}

func endsWithPortZero(address string) bool { return strings.HasSuffix(address, ":0") }
