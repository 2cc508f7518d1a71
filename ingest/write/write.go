// Package write copies batches of normalized records into the store.
package write

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
)

// A Batch is what one round of inserts stores, one insert per table.
type Batch struct {
	Agents       []*normalize.Agent
	Runs         []*normalize.Run
	Attributions []*normalize.Attribution
}

// Add puts a record into the batch.
func (b *Batch) Add(record normalize.Record) {
	switch r := record.(type) {
	case *normalize.Agent:
		b.Agents = append(b.Agents, r)
	case *normalize.Run:
		b.Runs = append(b.Runs, r)
	case *normalize.Attribution:
		b.Attributions = append(b.Attributions, r)
	}
}

// Len is the number of records.
func (b *Batch) Len() int { return len(b.Agents) + len(b.Runs) + len(b.Attributions) }

// A Writer sends batches in order. It is not safe for concurrent use; several writers on one store are.
type Writer struct {
	conn   driver.Conn
	logger *slog.Logger
	name   string // of this writer's life, in front of its deduplication tokens
	number int
}

// NewWriter returns a Writer into the database of conn, in which the migrations have been applied.
func NewWriter(conn driver.Conn, logger *slog.Logger) *Writer {
	return &Writer{conn: conn, logger: logger, name: rand.Text()}
}

// Write stores a batch and returns when ClickHouse has acknowledged all of it. A failure that may pass
// is tried again with the same rows and the same deduplication token, for retryPatience at most;
// any other failure is returned at once. What was stored before a failure may stay: tables are
// idempotent, and the batch can be written again.
func (w *Writer) Write(ctx context.Context, b Batch) error {
	w.number++
	if err := insert(ctx, w, schema.TableAgents, schema.AgentColumns, b.Agents, agentValues); err != nil {
		return err
	}
	if err := insert(ctx, w, schema.TableRuns, schema.RunColumns, b.Runs, runValues); err != nil {
		return err
	}
	return insert(ctx, w, schema.TableAttributions, schema.AttributionColumns, b.Attributions, attributionValues)
}

func agentValues(a *normalize.Agent) []any {
	return []any{string(a.OrganizationID), a.AgentID, a.Name, a.Slug, a.DeletedAt, a.UpdatedAt}
}

func runValues(r *normalize.Run) []any {
	return []any{string(r.OrganizationID), r.RunID, r.CreatedAt, r.AgentID, r.RunKind, r.ParentRunID, r.Status,
		r.InitiatorIdentifier, r.InitiatorName, r.InitiatorType, r.UpdatedAt}
}

func attributionValues(a *normalize.Attribution) []any {
	return []any{string(a.OrganizationID), a.AttributionID, a.RunID, a.AgentID, a.UserIdentifier, a.UserName,
		a.ActivityType, a.RunInitiationType, a.Source, a.OccurredAt}
}

// insert sends rows as one insert. One Send without a Flush is one block, of which the part in
// each partition is stored whole or not at all.
func insert[R any](ctx context.Context, w *Writer, table string, columns []string, rows []R, values func(R) []any) error {
	if len(rows) == 0 {
		return nil
	}
	settings := clickhouse.Settings{
		"async_insert": 0,
		// A token belongs to this batch of this writer, not to its content: the same rows must be
		// accepted again later, for instance after they were purged.
		"insert_deduplicate":         1,
		"insert_deduplication_token": fmt.Sprintf("%s-%d-%s", w.name, w.number, table),
		// A backfill may touch any number of months.
		"max_partitions_per_insert_block": 0,
	}
	statement := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ")"
	send := func() error {
		batch, err := w.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), statement)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := batch.Append(values(row)...); err != nil {
				batch.Abort()
				return err
			}
		}
		return batch.Send()
	}
	if err := w.retry(ctx, table, send); err != nil {
		return fmt.Errorf("write %d rows to %s: %w", len(rows), table, err)
	}
	return nil
}

const (
	retryPatience = 2 * time.Minute
	firstPause    = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

func (w *Writer) retry(ctx context.Context, table string, send func() error) error {
	deadline := time.Now().Add(retryPatience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := send()
		if err == nil || ctx.Err() != nil || !Retryable(err) || time.Now().After(deadline) {
			return err
		}
		w.logger.Warn("insert failed, trying again", "table", table, "pause", pause, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
