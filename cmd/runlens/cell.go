package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// A cell is a store and what a server runs on it. It shares nothing with other cells: one that is away, or does not
// answer, costs its own organizations their answers. It may be opened later than the server answers.
type cell struct {
	name     string // oneCell for the only one
	settings serveCmd
	secrets  [][]byte // of cursors; none if the store keeps them
	cache    int      // bytes of answers; 0 for none
	logger   *slog.Logger
	verifier *auth.Verifier

	conn   atomic.Pointer[driver.Conn] // that keys are read by
	opened atomic.Pointer[openCell]

	background sync.WaitGroup
}

// An openCell is what there is once the store was opened.
type openCell struct {
	store   *clickhouse.Server
	engine  *olap.Engine
	asked   *usage.Log
	lane    *push.Lane
	queries int // that the store runs at once
	metrics []prometheus.Collector
}

func newCell(name string, c serveCmd, secrets [][]byte, cache int, budget auth.Budget, logger *slog.Logger) *cell {
	logger = loggerOf(name, logger)
	one := &cell{name: name, settings: c, secrets: secrets, cache: cache, logger: logger}
	one.verifier = auth.NewVerifier(one, budget, time.Now, logger)
	if directory := c.directory; directory != nil {
		one.verifier.Only(func(o schema.OrganizationID) bool { return directory.Placement().Of(o) == name })
	}
	return one
}

// open opens the store and starts what runs in the background. An attempt that failed may be followed by another one.
func (c *cell) open(ctx, background context.Context) error {
	store, err := openMigrated(ctx, c.settings.storeFlags, c.logger)
	if err != nil {
		return err
	}
	opened, err := c.prepare(ctx, store)
	if err != nil {
		store.Close()
		return err
	}
	c.start(background, opened)
	return nil
}

// prepare reads what has to be known before the first answer.
func (c *cell) prepare(ctx context.Context, store *clickhouse.Server) (*openCell, error) {
	opened := &openCell{store: store}
	conn := store.Conn()
	fitting := func(ctx context.Context) (int, error) { return c.settings.fitting(ctx, store, c.logger) }
	var err error
	if opened.queries, err = within(ctx, c.settings.opening(), nil, fitting); err != nil {
		return nil, err
	}
	glanceAt(ctx, store, c.logger)
	secrets := c.secrets
	if len(secrets) == 0 {
		read := func(ctx context.Context) ([][]byte, error) { return olap.CursorSecrets(ctx, conn) }
		if secrets, err = within(ctx, readingSecret, nil, read); err != nil {
			return nil, err
		}
	}
	c.conn.Store(&conn)
	load := func(ctx context.Context) (any, error) { return nil, c.verifier.Refresh(ctx) }
	if _, err = within(ctx, readingKeys, nil, load); err != nil {
		c.conn.Store(nil)
		return nil, err
	}
	opened.engine = olap.NewEngine(conn, secrets...)
	if c.cache > 0 {
		opened.engine.CacheAnswers(c.cache)
	}
	opened.asked = usage.NewLog(conn, c.logger)
	return opened, nil
}

// start starts what runs until background is done, and lets queries in.
func (c *cell) start(background context.Context, opened *openCell) {
	conn := opened.store.Conn()
	if len(c.secrets) == 0 {
		c.background.Go(func() { followCursorSecrets(background, conn, opened.engine, cursorSecretPoll, c.logger) })
	}
	c.background.Go(func() { c.verifier.Follow(background) })
	c.background.Go(func() { opened.engine.Follow(background) })
	c.background.Go(func() { opened.asked.Run(background) })
	inserts := push.NewMetrics()
	opened.lane = c.newLane(opened.store, inserts)
	opened.metrics = []prometheus.Collector{opened.store, opened.asked, inserts, snapshot.LagMetric(conn),
		snapshot.DamageMetric(conn), snapshot.ConflictMetric(conn), snapshot.RollupMetric(conn)}
	for _, worker := range c.maintenance(opened.store) {
		opened.metrics = append(opened.metrics, worker)
		c.background.Go(func() { worker.Run(background) })
	}
	c.opened.Store(opened)
}

const (
	// refreshIdle, compactIdle and checkIdle are the pauses of maintenance that finds nothing to do.
	refreshIdle = time.Second
	compactIdle = 15 * time.Second
	checkIdle   = time.Minute
	// compactQuiet is how long a partition must have been left alone to be merged for a few rows.
	compactQuiet = 20 * time.Second
)

// maintenance keeps queries quick.
func (c *cell) maintenance(store *clickhouse.Server) []*maintain.Worker {
	share, conn := c.settings.MaintenanceShare, store.Conn()
	if share == 0 {
		return nil
	}
	refresher := rollup.New(conn, c.logger, rollup.Margin)
	refresher.TakeOutLate(takeOutLate(conn))
	here := func(ctx context.Context) (func(schema.OrganizationID) bool, error) { return c.here(ctx, 0) }
	checker := rollup.NewChecker(conn, here, c.logger)
	return []*maintain.Worker{
		maintain.New("refresh", refresher, c.logger, share/2, refreshIdle, conn.Ping),
		maintain.New("compact", maintain.NewCompactor(conn, compactQuiet), c.logger, share/2, compactIdle, conn.Ping),
		// A purge that dies leaves an organization damaged. Repairs take the share of refreshes while there are some.
		maintain.New("check", checker, c.logger, min(share/2, rollup.CheckShare), checkIdle, conn.Ping).
			Hurry(share/2, checker.Urgent),
	}
}

// ready says what is missing until requests can be answered.
func (c *cell) ready(ctx context.Context) error {
	opened, err := c.get()
	if err != nil {
		return err
	}
	if opened.store.Conn().Ping(ctx) != nil {
		return fmt.Errorf("%s does not answer", c.what())
	}
	db, err := opened.store.DB()
	if err != nil {
		return fmt.Errorf("%s does not answer", c.what())
	}
	defer db.Close()
	state, err := schema.Own.Status(ctx, db)
	if err != nil {
		return fmt.Errorf("the migrations of %s cannot be read", c.what())
	}
	if !state.Works() {
		return fmt.Errorf("%s has migration %d and works with binaries from %d on, this one has %d",
			c.what(), state.Version, state.Oldest, state.Latest)
	}
	return nil
}

// what is what messages call the cell.
func (c *cell) what() string {
	if c.name == oneCell {
		return "the store"
	}
	return "the cell " + c.name
}

// get is the open cell. Its error says that it is not open yet.
func (c *cell) get() (*openCell, error) {
	if opened := c.opened.Load(); opened != nil {
		return opened, nil
	}
	return nil, c.away()
}

// away is the error of a cell that is not open.
func (c *cell) away() error { return fmt.Errorf("%s is away", c.what()) }

// close waits for what runs in the background, which has been told to end, and leaves the store.
func (c *cell) close() error {
	c.background.Wait()
	if opened := c.opened.Load(); opened != nil {
		opened.lane.Close()
		return opened.store.Close()
	}
	return nil
}
