// Package compact keeps every partition of the tables in one part. A query that collapses versions
// (FINAL) reads such a partition at the price of a plain scan; over several parts it has to merge
// while it reads. ClickHouse merges by itself, but stops long before one part is left.
package compact

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/schema"
)

// Options say how a Compactor works.
type Options struct {
	Conn   driver.Conn
	Logger *slog.Logger
	// Share is the most part of the time that is spent on merging, from 0 to 1 (both exclusive): a
	// merge that took a second is followed by a pause of nine seconds at a share of 0.1.
	Share float64
	// Idle is the pause when there is nothing to do.
	Idle time.Duration
}

// A Compactor merges one partition after the other. Several of them on one store do no harm: a
// partition that is in one part is left alone. It is a prometheus.Collector.
type Compactor struct {
	Options
	merges  prometheus.Counter
	seconds prometheus.Counter
	pending prometheus.Gauge
}

// New returns a Compactor that does nothing yet.
func New(o Options) *Compactor {
	return &Compactor{
		Options: o,
		merges:  prometheus.NewCounter(prometheus.CounterOpts{Name: "runlens_compactions_total", Help: "Partitions that were merged into one part."}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{Name: "runlens_compaction_seconds_total", Help: "Time spent on merging partitions into one part."}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "runlens_compactions_pending", Help: "Partitions that were in several parts at the last look."}),
	}
}

// Run works until ctx is done. What fails is logged and tried again later: nothing depends on it but speed.
func (c *Compactor) Run(ctx context.Context) {
	for {
		pause := c.Idle
		began := time.Now()
		merged, err := c.Step(ctx)
		switch took := time.Since(began); {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.Logger.Warn("a partition could not be merged, trying again later", "error", err)
		case merged:
			c.merges.Inc()
			c.seconds.Add(took.Seconds())
			pause = time.Duration(float64(took) * (1 - c.Share) / c.Share)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// A partition that is in several parts, or in one that was never merged and so may hold several
// versions of a row.
type partition struct{ table, id string }

// tables are those whose rows have versions or repeats.
var tables = []string{schema.TableRuns, schema.TableAttributions, schema.TableAgents}

// Step merges the partition in which the most rows stand outside its largest part, and reports whether
// there was one.
func (c *Compactor) Step(ctx context.Context) (bool, error) {
	rows, err := c.Conn.Query(ctx, "SELECT table, partition_id FROM system.parts"+
		" WHERE database = currentDatabase() AND active AND table IN {tables:Array(String)}"+
		" GROUP BY table, partition_id HAVING count() > 1 OR max(level) = 0 ORDER BY sum(rows) - max(rows) DESC, max(rows) DESC",
		clickhouse.Named("tables", tables))
	if err != nil {
		return false, fmt.Errorf("compact: look for parts: %w", err)
	}
	defer rows.Close()
	var found []partition
	for rows.Next() {
		var p partition
		if err := rows.Scan(&p.table, &p.id); err != nil {
			return false, err
		}
		found = append(found, p)
	}
	if err := rows.Err(); err != nil {
		return false, fmt.Errorf("compact: look for parts: %w", err)
	}
	c.pending.Set(float64(len(found)))
	if len(found) == 0 {
		return false, nil
	}
	p := found[0]
	// A merge that cannot be done now, because another one is at work on a part, is no failure.
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"optimize_throw_if_noop": 0, "optimize_skip_merged_partitions": 1}))
	if err := c.Conn.Exec(ctx, "OPTIMIZE TABLE "+p.table+" PARTITION ID '"+p.id+"' FINAL"); err != nil {
		return false, fmt.Errorf("compact: merge %s %s: %w", p.table, p.id, err)
	}
	return true, nil
}

// Describe is part of prometheus.Collector.
func (c *Compactor) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect is part of prometheus.Collector.
func (c *Compactor) Collect(out chan<- prometheus.Metric) {
	c.merges.Collect(out)
	c.seconds.Collect(out)
	c.pending.Collect(out)
}
