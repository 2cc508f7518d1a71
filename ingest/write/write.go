// Package write copies batches of normalized records into the store.
package write

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

// A Batch is what one round of inserts stores, one insert per table.
type Batch struct {
	Agents       []normalize.Agent
	Runs         []normalize.Run
	Attributions []normalize.Attribution

	// What Write did to the batch because people were purged (package purged): attribution records that it took out, and
	// the number of runs whose initiator it took out.
	Excluded  []Excluded
	Anonymous int

	// Once has Write look at what was stored before of the records, so that they count once (once.go). Moved is what does
	// not do so yet.
	Once  bool
	Moved Moved

	indexes []int32 // of Attributions, as Write got them; as many once one of them was taken out
}

// An Excluded is an attribution record that Write took out of a batch.
type Excluded struct {
	normalize.Attribution
	Index int // in Attributions as Write got it
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
	b.Excluded, b.Anonymous = b.Excluded[:0], 0
}

// Len is the number of records.
func (b *Batch) Len() int { return len(b.Agents) + len(b.Runs) + len(b.Attributions) }

// keepFirst gives the attribution records of one id the content of the first of them. A batch is stored at one moment,
// so the store could not tell which of several contents came first, and that one counts (contract 4.20).
func (b *Batch) keepFirst(logger *slog.Logger) {
	first := make(map[identity]int, len(b.Attributions))
	found := contradictions{}
	for i := range b.Attributions {
		a := &b.Attributions[i]
		who := identity{a.OrganizationID, a.AttributionID}
		if at, repeated := first[who]; repeated {
			found.keep(a, &b.Attributions[at])
		} else {
			first[who] = i
		}
	}
	found.log(logger)
}

// A Writer sends batches. It is safe for concurrent use, and so are several writers on one store.
type Writer struct {
	conn  driver.Conn
	retry Retry
	read  atomic.Pointer[reading] // of who was purged, the one that began last; nil before the first

	// LeftOut is told of everything that Write did to batches because people were purged: n attribution records that
	// stay out, or n runs without their initiator. Nil for nobody.
	LeftOut func(kind normalize.Kind, n int)

	// Gate is that of the cell, in a deployment that has cells; else nil.
	Gate *cells.Gate
}

// NewWriter returns a Writer into the database of conn, in which the migrations have been applied.
func NewWriter(conn driver.Conn, retry Retry) *Writer {
	return &Writer{conn: conn, retry: retry}
}

// Write stores a batch and returns when ClickHouse has acknowledged all of it, but for what stays out because people
// were purged (exclude.go). A failure that may pass is tried again with the same rows; any other failure is returned at
// once. What was stored before a failure may stay, and may be stored again: repeats change no answer (contract 3). No
// attempt relies on another one, because nobody knows what became of it (schema/decisions/insert-retries.md).
//
// The error is a *MovedError for organizations that are not, or not only, in the cell any more.
func (w *Writer) Write(ctx context.Context, b *Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return w.admitted(ctx, b, func() error { return w.write(ctx, b) })
}

func (w *Writer) write(ctx context.Context, b *Batch) error {
	b.indexes = b.indexes[:0]
	if last := w.read.Load(); last == nil || time.Since(last.began) > freshFor {
		if err := w.ReadPurged(ctx); err != nil {
			return err
		}
	}
	w.exclude(b, nil)
	b.keepFirst(w.retry.Logger)
	if b.Once {
		if err := w.lookUp(ctx, b); err != nil {
			return err
		}
	}
	found := late{}
	if err := insert(ctx, w, b, found, schema.TableAgents, schema.AgentColumns, &b.Agents, agentColumns); err != nil {
		return err
	}
	if err := insert(ctx, w, b, found, schema.TableRuns, schema.RunColumns, &b.Runs, runColumns); err != nil {
		return err
	}
	err := insert(ctx, w, b, found, schema.TableAttributions, schema.AttributionColumns, &b.Attributions,
		attributionColumns)
	if err == nil {
		err = w.ReadPurged(ctx)
	}
	if err != nil {
		return err
	}
	w.exclude(b, found)
	return w.takeOut(ctx, found)
}

// insert sends rows as one insert. One Send without a Flush is one block, of which the part in
// each partition is stored whole or not at all. rows are those of the batch, which later attempts apply the list of
// purged people to again.
func insert[R any](ctx context.Context, w *Writer, b *Batch, found late, table string, names []string, rows *[]R,
	columns []column[R]) error {
	if len(*rows) == 0 {
		return nil
	}
	settings := clickhouse.Settings{
		"async_insert": 0,
		// A backfill may touch any number of months.
		"max_partitions_per_insert_block": 0,
		// Merges collapse versions anyway, and FINAL does not rely on it.
		"optimize_on_insert": 0,
	}
	statement := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")"
	first := true
	ctx, end := trace.Statement(ctx, "insert into "+table)
	err := w.retry.Do(ctx, "insert into "+table, func() error {
		if !first {
			if err := w.readPurged(ctx); err != nil {
				return err
			}
			w.exclude(b, found)
		}
		first = false
		if len(*rows) == 0 {
			return nil
		}
		// ClickHouse logs a block as known before it has stored it. After a crash in between, a repeat would be
		// dropped for rows that are not there, so no attempt may pass for a repeat of another one. (The
		// settings that switch deduplication off differ from version to version.)
		settings["insert_deduplication_token"] = rand.Text()
		batch, err := w.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), statement)
		if err != nil {
			return err
		}
		for i, fill := range columns {
			if err := fill(batch.Column(i), *rows); err != nil {
				batch.Abort()
				return err
			}
		}
		return batch.Send()
	})
	end(err)
	if err != nil {
		return fmt.Errorf("write %d rows to %s: %w", len(*rows), table, err)
	}
	return nil
}
