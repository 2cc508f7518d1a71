package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// Until it is open, a cell is a store of keys that fails, so that of a key that no other cell has nobody says that it
// is not valid.

// store is that of the cell's keys.
func (c *cell) store() (keys.Store, error) {
	if stored := c.keys.Load(); stored != nil {
		return *stored, nil
	}
	return keys.Store{}, c.away()
}

// Valid is that of auth.Store.
func (c *cell) Valid(ctx context.Context, keyID string, at time.Time) (schema.APIKey, error) {
	store, err := c.store()
	if err != nil {
		return schema.APIKey{}, err
	}
	return store.Valid(ctx, keyID, at)
}

// AllValid is that of auth.Store.
func (c *cell) AllValid(ctx context.Context, keyIDs []string, at time.Time) ([]schema.APIKey, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	return store.AllValid(ctx, keyIDs, at)
}

// Changed is that of auth.Store.
func (c *cell) Changed(ctx context.Context, since any) (schema.APIKeyChanges, error) {
	store, err := c.store()
	if err != nil {
		return schema.APIKeyChanges{}, err
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
	return opened.engine.Run(ctx, r)
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

// Collect sends what the parts of the cell have.
func (m cellMetrics) Collect(out chan<- prometheus.Metric) {
	opened := m.opened.Load()
	if m.name != oneCell {
		up := 0.
		if opened != nil && opened.answers() {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(cellUp, prometheus.GaugeValue, up)
	}
	if opened != nil {
		for _, part := range opened.metrics {
			part.Collect(out)
		}
	}
}

// scrapePatience bounds what one scrape of the metrics may wait for a cell.
const scrapePatience = 2 * time.Second

func (o *openCell) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	return o.store.Conn().Ping(ctx) == nil
}

// A cellsEngine answers each organization from its cell.
type cellsEngine struct {
	cells []*cell
	of    func(schema.OrganizationID) int
}

// Run is that of httpapi.Engine.
func (e cellsEngine) Run(ctx context.Context, r olap.Request) (*olap.Result, error) {
	return e.cells[e.of(r.OrganizationID)].Run(ctx, r)
}
