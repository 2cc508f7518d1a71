package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// Until it is open, a cell is a store of keys that fails, so that of a key that no other cell has nobody says that it
// is not valid.

// store is that of the cell's keys.
func (c *cell) store() (keys.Store, error) {
	if conn := c.conn.Load(); conn != nil {
		return keys.NewStore(*conn), nil
	}
	return keys.Store{}, c.away()
}

// keysAge is how old a reading of where organizations are may be that decides whether a key is the cell's. With what
// http/auth relies on for how long, it is below the Lease and the 5 s in which a revocation must hold.
const keysAge = 2 * time.Second

// here says of which organizations keys and answers of the cell count: of those that were in it by what its own store
// said, as of a reading that began within age.
func (c *cell) here(ctx context.Context, age time.Duration) (func(schema.OrganizationID) bool, error) {
	var conn driver.Conn
	if opened := c.conn.Load(); opened != nil {
		conn = *opened
	} else if c.settings.directory != nil {
		return nil, c.away()
	}
	return c.settings.directory.Here(ctx, c.name, conn, time.Now().Add(-age))
}

// has reports whether an organization is in the cell, as of a reading that began within age, or now: it may have come
// since.
func (c *cell) has(ctx context.Context, organization schema.OrganizationID, age time.Duration) (bool, error) {
	here, err := c.here(ctx, age)
	if err == nil && !here(organization) {
		here, err = c.here(ctx, 0)
	}
	return err == nil && here(organization), err
}

// Valid is that of auth.Store.
func (c *cell) Valid(ctx context.Context, keyID string, at time.Time) (schema.APIKey, error) {
	store, err := c.store()
	if err != nil {
		return schema.APIKey{}, err
	}
	key, err := store.Valid(ctx, keyID, at)
	if err != nil || key.KeyID == "" {
		return schema.APIKey{}, err
	}
	has, err := c.has(ctx, key.OrganizationID, keysAge)
	if err == nil && !has {
		err = auth.ErrElsewhere
	}
	return key, err
}

// AllValid is that of auth.Store.
func (c *cell) AllValid(ctx context.Context, keyIDs []string, at time.Time) ([]schema.APIKey, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	here, err := c.here(ctx, keysAge)
	if err != nil {
		return nil, err
	}
	valid, err := store.AllValid(ctx, keyIDs, at)
	return slices.DeleteFunc(valid, func(k schema.APIKey) bool { return !here(k.OrganizationID) }), err
}

// Changed is that of auth.Store.
func (c *cell) Changed(ctx context.Context, since any) (schema.APIKeyChanges, error) {
	store, err := c.store()
	if err != nil {
		return schema.APIKeyChanges{}, err
	}
	if _, err := c.here(ctx, 0); err != nil {
		return schema.APIKeyChanges{}, err
	}
	if conn := c.conn.Load(); conn != nil {
		if err := c.settings.directory.Remind(ctx, c.name, *conn); err != nil {
			c.logger.Warn("the cell could not be told where organizations are", "error", err)
		}
	}
	return store.Changed(ctx, since)
}

// Used is that of auth.Store.
func (c *cell) Used(ctx context.Context, since, at time.Time, each func(schema.APIKeyUse)) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	return store.Used(ctx, since, at, each)
}

// RecordUses is that of auth.Store.
func (c *cell) RecordUses(ctx context.Context, uses map[string]time.Time) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	return store.RecordUses(ctx, uses)
}

// Run is that of httpapi.Engine.
func (c *cell) Run(ctx context.Context, r olap.Request) (*olap.Result, error) {
	opened, err := c.get()
	if err != nil {
		return nil, err
	}
	result, err := opened.engine.Run(ctx, r)
	var refused *query.Error
	if !errors.As(err, &refused) || refused.Code != query.InvalidCursor || c.settings.directory == nil ||
		len(c.secrets) > 0 {
		return result, err
	}
	// It may be of a cell where the organization was, or from where another server answers it already: the store has
	// accepted that one's secrets by then.
	secrets, err := olap.CursorSecrets(ctx, opened.store.Conn())
	if err != nil {
		return nil, err
	}
	opened.engine.UseCursorSecrets(secrets...)
	return opened.engine.Run(ctx, r)
}

// explain is olap.Engine.Explain.
func (c *cell) explain(ctx context.Context, r olap.Request) (*olap.Explanation, error) {
	opened, err := c.get()
	if err != nil {
		return nil, err
	}
	return opened.engine.Explain(ctx, r)
}

// record keeps that a question was asked.
func (c *cell) record(e usage.Entry) {
	if opened := c.opened.Load(); opened != nil {
		opened.asked.Record(e)
	}
}

var cellUp = prometheus.NewDesc("runlens_cell_up", "1 while the cell answers, else 0.",
	nil, nil)

// collector is what the admin address shows of the cell, with its name if there are several.
func (c *cell) collector() prometheus.Collector { return metricsOf(c.name, cellMetrics{c}) }

type cellMetrics struct{ *cell }

// Describe sends what there is to collect of an open cell, else what says that it is not open.
func (m cellMetrics) Describe(out chan<- *prometheus.Desc) {
	if m.name != oneCell {
		out <- cellUp
	}
	if opened := m.opened.Load(); opened != nil {
		for _, part := range opened.metrics {
			part.Describe(out)
		}
	}
}

// Collect sends what the parts of the cell have. They are asked at the same time: each waits for scrapePatience where
// ClickHouse is silent, and all of them one after the other for longer than Prometheus waits.
func (m cellMetrics) Collect(out chan<- prometheus.Metric) {
	opened := m.opened.Load()
	var asked sync.WaitGroup
	if m.name != oneCell {
		asked.Go(func() {
			up := 0.
			if opened != nil && opened.answers() {
				up = 1
			}
			out <- prometheus.MustNewConstMetric(cellUp, prometheus.GaugeValue, up)
		})
	}
	if opened != nil {
		for _, part := range opened.metrics {
			asked.Go(func() { part.Collect(out) })
		}
	}
	asked.Wait()
}

// scrapePatience bounds what one scrape of the metrics may wait for a cell.
const scrapePatience = 2 * time.Second

func (o *openCell) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	return o.store.Conn().Ping(ctx) == nil
}

// servedCells are the cells of a server. What one answered counts if its own store says that the organization is there,
// by a reading that began less than a Lease before (package cells): it may have been moved since the question came.
// Then the cell where it is now is asked.
type servedCells struct {
	cells []*cell
	of    func(schema.OrganizationID) int
}

// verifiers are those of the cells' keys.
func (s servedCells) verifiers() (all auth.Verifiers) {
	for _, c := range s.cells {
		all = append(all, c.verifier)
	}
	return all
}

// cell is the one that is said to have the organization. The error is cells.ErrUnknownCell where the file names none.
func (s servedCells) cell(organization schema.OrganizationID) (*cell, error) {
	i := s.of(organization)
	if i < 0 {
		return nil, cells.ErrUnknownCell
	}
	return s.cells[i], nil
}

// Run is that of httpapi.Engine.
func (s servedCells) Run(ctx context.Context, r olap.Request) (*olap.Result, error) {
	return answered(ctx, s, r, (*cell).Run)
}

// explain is olap.Engine.Explain.
func (s servedCells) explain(ctx context.Context, r olap.Request) (*olap.Explanation, error) {
	return answered(ctx, s, r, (*cell).explain)
}

// record has the usage log of its cell count a question, but where the file names no such cell.
func (s servedCells) record(asked usage.Entry) {
	if c, err := s.cell(asked.OrganizationID); err == nil {
		c.record(asked)
	}
}

// answered is what the cell answers that has the organization.
func answered[A any](
	ctx context.Context, s servedCells, r olap.Request, ask func(*cell, context.Context, olap.Request) (*A, error),
) (*A, error) {
	organization := r.Access.Organization()
	for range cellAttempts {
		c, err := s.cell(organization)
		if err != nil {
			return nil, err
		}
		answer, err := ask(c, ctx, r)
		has, unknown := c.has(ctx, organization, cells.Lease)
		switch {
		case unknown != nil:
			return nil, cmp.Or(err, unknown)
		case has:
			return answer, err
		}
	}
	return nil, errors.New("the organization is in none of the cells in which it should be")
}

// cellAttempts is how many cells are asked for an answer at most.
const cellAttempts = 4
