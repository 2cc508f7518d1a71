// Package write copies batches of normalized records into the store.
package write

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
)

// A Batch is what one round of inserts stores, one insert per table.
type Batch struct {
	Agents       []normalize.Agent
	Runs         []normalize.Run
	Attributions []normalize.Attribution
}

// Add normalizes a raw record and puts it into the batch. The error is a *normalize.Error.
func (b *Batch) Add(n *normalize.Normalizer, raw *normalize.Raw) error {
	switch raw.Kind {
	case normalize.KindAgent:
		return add(&b.Agents, n.Agent, raw)
	case normalize.KindRun:
		return add(&b.Runs, n.Run, raw)
	default:
		return add(&b.Attributions, n.Attribution, raw)
	}
}

func add[R any](rows *[]R, rule func(*normalize.Raw) (R, error), raw *normalize.Raw) error {
	row, err := rule(raw)
	if err == nil {
		*rows = append(*rows, row)
	}
	return err
}

// Clear empties the batch and keeps its memory for the next records.
func (b *Batch) Clear() {
	b.Agents, b.Runs, b.Attributions = b.Agents[:0], b.Runs[:0], b.Attributions[:0]
}

// Len is the number of records.
func (b *Batch) Len() int { return len(b.Agents) + len(b.Runs) + len(b.Attributions) }

// A Writer sends batches. It is safe for concurrent use, and so are several writers on one store.
type Writer struct {
	conn  driver.Conn
	retry Retry
	name  string // of this writer's life, in front of its deduplication tokens
	count atomic.Int64
}

// NewWriter returns a Writer into the database of conn, in which the migrations have been applied.
func NewWriter(conn driver.Conn, retry Retry) *Writer {
	return &Writer{conn: conn, retry: retry, name: rand.Text()}
}

// Write stores a batch and returns when ClickHouse has acknowledged all of it. A failure that may pass
// is tried again with the same rows and the same deduplication token; any other failure is returned
// at once. What was stored before a failure may stay: tables are idempotent, and the batch can be
// written again.
func (w *Writer) Write(ctx context.Context, b *Batch) error {
	token := fmt.Sprintf("%s-%d", w.name, w.count.Add(1))
	if err := insert(ctx, w, token, schema.TableAgents, schema.AgentColumns, b.Agents, agentColumns); err != nil {
		return err
	}
	if err := insert(ctx, w, token, schema.TableRuns, schema.RunColumns, b.Runs, runColumns); err != nil {
		return err
	}
	return insert(ctx, w, token, schema.TableAttributions, schema.AttributionColumns, b.Attributions, attributionColumns)
}

// insert sends rows as one insert. One Send without a Flush is one block, of which the part in
// each partition is stored whole or not at all.
func insert[R any](ctx context.Context, w *Writer, token, table string, names []string, rows []R, columns []column[R]) error {
	if len(rows) == 0 {
		return nil
	}
	settings := clickhouse.Settings{
		"async_insert": 0,
		// A token belongs to this batch of this writer, not to its content: the same rows must be
		// accepted again later, for instance after they were purged.
		"insert_deduplicate":         1,
		"insert_deduplication_token": token + "-" + table,
		// Rows that an attempt stored but did not live to count are counted by the next one.
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		// A backfill may touch any number of months.
		"max_partitions_per_insert_block": 0,
		// Merges collapse versions anyway, and FINAL does not rely on it.
		"optimize_on_insert": 0,
	}
	statement := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")"
	err := w.retry.Do(ctx, "insert into "+table, func() error {
		batch, err := w.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), statement)
		if err != nil {
			return err
		}
		for i, fill := range columns {
			if err := fill(batch.Column(i), rows); err != nil {
				batch.Abort()
				return err
			}
		}
		return batch.Send()
	})
	if err != nil {
		return fmt.Errorf("write %d rows to %s: %w", len(rows), table, err)
	}
	return nil
}
