package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/schema"
)

// A Compactor keeps every partition of the tables in one part. A query that collapses versions
// (FINAL) reads such a partition at the price of a plain scan; over several parts it has to merge
// while it reads. ClickHouse merges by itself, but stops long before one part is left. Several compactors on
// one store do no harm: a partition that is in one part is left alone. It is a Task.
type Compactor struct {
	prometheus.Collector // of pending
	conn                 driver.Conn
	quiet                time.Duration
	pending              prometheus.Gauge
	did                  string
}

// NewCompactor returns a Compactor that does nothing yet. A partition to which rows were written within quiet is left
// alone until a tenth of its rows are outside its largest part: it would soon be in several parts again.
func NewCompactor(conn driver.Conn, quiet time.Duration) *Compactor {
	pending := prometheus.NewGauge(prometheus.GaugeOpts{Name: "runlens_compactions_pending",
		Help: "Partitions that are to be merged into one part."})
	return &Compactor{Collector: pending, conn: conn, quiet: quiet, pending: pending}
}

// A partition that is in several parts, or in one that was never merged and so may hold several
// versions of a row.
type partition struct {
	Table string `ch:"table"`
	ID    string `ch:"partition_id"`
}

// compacted are the tables whose rows have versions, repeats or signs.
func compacted() []string {
	tables := []string{schema.TableRuns, schema.TableAttributions, schema.TableAgents}
	for _, t := range schema.RollupTables {
		tables = append(tables, t.Table)
	}
	return tables
}

// Step merges one partition, of those that can be merged now the one in which the most rows are outside its largest
// part. The error is of partitions before it that ClickHouse failed to merge, as one with a damaged part.
func (c *Compactor) Step(ctx context.Context) (more bool, err error) {
	c.did = ""
	found, err := c.find(ctx)
	if err != nil {
		return false, fmt.Errorf("maintain: read parts: %w", err)
	}
	c.pending.Set(float64(len(found)))
	// ClickHouse reports when it can do nothing. Trying again at once would be an endless loop, and keep all other
	// partitions waiting.
	ctx = clickhouse.Context(ctx,
		clickhouse.WithSettings(clickhouse.Settings{"optimize_throw_if_noop": 1, "optimize_skip_merged_partitions": 1}))
	var failed error
	for _, p := range found {
		err := c.conn.Exec(ctx, "OPTIMIZE TABLE "+p.Table+" PARTITION ID '"+p.ID+"' FINAL")
		if err == nil {
			c.did = "merge"
			return true, failed
		}
		var exception *clickhouse.Exception
		answered := errors.As(err, &exception)
		if answered && exception.Code == codeCannotMerge {
			continue
		}
		c.did = "merge"
		failed = cmp.Or(failed, fmt.Errorf("maintain: merge %s %s: %w", p.Table, p.ID, err))
		if !answered { // nor would it be of the next one
			break
		}
	}
	return false, failed
}

// Did is that of maintain.Task.
func (c *Compactor) Did() string { return c.did }

// codeCannotMerge is ClickHouse's CANNOT_ASSIGN_OPTIMIZE: another merge is at work on a part, or one part has a
// projection that another one does not have yet.
const codeCannotMerge = 388

func (c *Compactor) find(ctx context.Context) (found []partition, err error) {
	err = c.conn.Select(ctx, &found, "SELECT table, partition_id FROM system.parts"+
		" WHERE database = currentDatabase() AND active AND table IN {tables:Array(String)}"+
		" GROUP BY table, partition_id HAVING (count() > 1 OR max(level) = 0)"+
		" AND (10 * (sum(rows) - max(rows)) >= sum(rows) OR now() - max(modification_time) >= {quiet:Int64})"+
		" ORDER BY sum(rows) - max(rows) DESC, max(rows) DESC",
		clickhouse.Named("tables", compacted()), clickhouse.Named("quiet", int64(c.quiet/time.Second)))
	return found, err
}
