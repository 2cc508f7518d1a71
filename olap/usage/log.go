package usage

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/backoff"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

const (
	// mostPending bounds the rows that wait to be written, and as many may be in a batch that the store does not take:
	// some MB. Servers answer a few hundred questions in writeEvery.
	mostPending  = 10_000
	writeEvery   = 5 * time.Second
	writeTimeout = 2 * time.Second
)

// A Log writes entries into the store in batches. It is safe for concurrent use.
//
//  1. Record takes an entry into memory and returns at once, whatever the store does.
//  2. Run writes what was recorded every 5 seconds, and the rest when the server ends.
//  3. A batch that the store does not take is tried again. Meanwhile entries beyond mostPending are lost, and counted.
//
// A batch of which the acknowledgement was lost is in the store twice.
type Log struct {
	conn   driver.Conn
	logger *slog.Logger
	lost   prometheus.Counter
	every  time.Duration // writeEvery

	failures backoff.Failures // of writing

	mu      sync.Mutex
	pending []row
	refused map[refusal]int // the index in pending of a refusal without a shape

	unlogged int // entries that were lost since the log said so
}

// A row is an entry and how many times it was recorded.
type row struct {
	Entry
	questions uint32
}

// A refusal is what refusals without a shape have in common where one row stands for them: a caller who ignores the
// limit of its rate sends more than anybody wants to keep.
type refusal struct {
	organization         schema.OrganizationID
	keyID, code, limited string
}

// NewLog returns a Log that writes through conn. What is recorded waits for Run.
func NewLog(conn driver.Conn, logger *slog.Logger) *Log {
	return &Log{
		conn: conn, logger: logger, every: writeEvery, failures: backoff.Failures{Logger: logger}, refused: map[refusal]int{},
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "runlens_usage_lost_total", Help: "Questions that are missing in the log of usage.",
		}),
	}
}

// Record takes an entry. It never waits for the store.
func (l *Log) Record(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	equal := refusal{e.OrganizationID, e.KeyID, e.Code, e.LimitHit}
	if i, ok := l.refused[equal]; ok && e.Model == "" && l.pending[i].questions < math.MaxUint32 {
		l.pending[i].questions++
		return
	}
	if len(l.pending) == mostPending {
		l.lost.Inc()
		l.unlogged++
		return
	}
	if e.Model == "" {
		l.refused[equal] = len(l.pending)
	}
	l.pending = append(l.pending, row{e, 1})
}

// Run writes until ctx is done, and then the rest. It returns within twice writeTimeout after that.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	var batch []row // that the store has not taken yet
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if len(batch) == 0 {
				batch = l.take()
			}
			if l.write(batch) {
				batch = nil
			}
		}
	}
	if rest := append(batch, l.take()...); !l.write(rest) {
		l.lose(rest)
	}
}

// take empties what is pending, and logs how many entries were lost since the last time.
func (l *Log) take() []row {
	l.mu.Lock()
	taken, unlogged := l.pending, l.unlogged
	l.pending, l.unlogged = nil, 0
	clear(l.refused)
	l.mu.Unlock()
	if unlogged > 0 {
		l.logger.Warn("usage was lost: the store did not take it in time", "questions", unlogged)
	}
	return taken
}

// lose counts rows as lost.
func (l *Log) lose(rows []row) {
	questions := 0
	for _, r := range rows {
		questions += int(r.questions)
	}
	l.lost.Add(float64(questions))
	l.logger.Warn("usage was lost: the store did not take it before the server ended", "questions", questions)
}

const insert = "INSERT INTO " + schema.TableUsageLog + " (organization_id, at, key_id, questions, code, limit_hit, " +
	"model, metrics, dimensions, filters, days, timezone, row_limit, " +
	"returned_rows, rows_read, bytes_read, processor_us, took_us)"

// write reports whether the store took a batch. No caller's end interrupts it: it may be stored then or not.
func (l *Log) write(rows []row) bool {
	if len(rows) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	batch, err := l.conn.PrepareBatch(ctx, insert)
	for i := 0; i < len(rows) && err == nil; i++ {
		err = batch.Append(rows[i].columns()...)
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		l.failures.Failed(ctx, slog.LevelWarn, "usage was not written", "rows", len(rows),
			"error", failure.Of("usage", err))
		return false
	}
	l.failures.Succeeded(ctx, "usage is written again")
	return true
}

// columns are the values of insert's columns.
func (r row) columns() []any {
	var processor *uint64
	if r.Cost.Processor != nil {
		micros := uint64(r.Cost.Processor.Microseconds())
		processor = &micros
	}
	return []any{
		string(r.OrganizationID), r.At, r.KeyID, r.questions, r.Code, r.LimitHit,
		r.Model, r.Metrics, r.Dimensions, r.Filters, uint16(r.Days), r.Timezone, uint16(r.Shape.Limit),
		uint16(r.ReturnedRows), r.Cost.Rows, r.Cost.Bytes, processor, uint64(r.Took.Microseconds()),
	}
}

// Describe is part of prometheus.Collector.
func (l *Log) Describe(out chan<- *prometheus.Desc) { l.lost.Describe(out) }

// Collect is part of prometheus.Collector.
func (l *Log) Collect(out chan<- prometheus.Metric) { l.lost.Collect(out) }
