// Package settle keeps the settled tables: it copies the records that changed since the last time,
// versions and repeats collapsed, into tables of signed rows, which add up without collapsing anything and in whose
// projections sums are a look-up. What is not settled yet is found by a query itself (olap/compile), whenever it
// runs; so settling changes no answer, only its cost. schema/DESIGN.md tells how that stays exact.
package settle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

// Margin is how long ago a row was stored before it is settled: rows get the store's clock, and one that
// is set back by less must not hide a row behind the settlement.
const Margin = moment.ClockMargin

const (
	// chunkRows is about how many rows one step settles; more only if they were stored within one second.
	chunkRows = 500_000
	// Fewer rows than smallStep wait for more, at most smallWait: eight times as many take a step two or three times as long, and queries wait for
	// its end. With still more, what is not settled yet costs them more than that.
	smallStep = 8_000
	smallWait = 10 * time.Second
	// refresh is the age at which a settlement is renewed although nothing was stored.
	refresh = time.Minute
)

// A Settler settles one store, step by step. Several of them on one store do no harm (schema/DESIGN.md).
// It is a prometheus.Collector.
type Settler struct {
	conn   driver.Conn
	logger *slog.Logger
	margin time.Duration

	name  int64 // in claims
	able  bool  // the store can do it, which is asked once
	clock clockWatch

	records     prometheus.Counter
	age         prometheus.Gauge
	conflicting *prometheus.GaugeVec
	counted     bool // conflicting was set once
}

// New returns a Settler that does nothing yet. margin is Margin but for tests.
func New(conn driver.Conn, logger *slog.Logger, margin time.Duration) *Settler {
	return &Settler{
		conn: conn, logger: logger, margin: margin, name: randomHolder(), conflicting: newConflicts(),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "runlens_settled_rows_total", Help: "Stored rows that were looked at to settle their records."}),
		age:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "runlens_settled_age_seconds", Help: "How long ago the newest row was stored that is settled with all before it."}),
	}
}

// Describe is part of prometheus.Collector.
func (s *Settler) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, out) }

// Collect is part of prometheus.Collector.
func (s *Settler) Collect(out chan<- prometheus.Metric) {
	s.records.Collect(out)
	s.age.Collect(out)
	s.conflicting.Collect(out)
}

// Step settles the next rows, unless there are so few that it waits for more, and reports whether there may be
// more to do at once.
func (s *Settler) Step(ctx context.Context) (more bool, err error) {
	if more, err = s.step(ctx, true); errors.Is(err, errClaimed) || errors.Is(err, errClaimLost) {
		return false, nil
	}
	return more, err
}

// Settle settles everything that was stored before the call, but for the margin.
func (s *Settler) Settle(ctx context.Context) error {
	for {
		more, err := s.step(ctx, false)
		switch {
		case errors.Is(err, errClaimed), errors.Is(err, errClaimLost):
			err = moment.Pause(ctx, leasePoll)
		case !more:
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (s *Settler) step(ctx context.Context, patient bool) (more bool, err error) {
	if !s.able {
		if s.able, err = s.check(ctx); !s.able {
			return false, err
		}
	}
	state, err := moment.ReadSettlement(ctx, s.conn)
	if err != nil {
		return false, err
	}
	if state.Number == 0 {
		// Numbers begin where no earlier table of settlements has been, which a process that stood still may know.
		return true, write(ctx, s.conn, done, uint64(state.Now.UnixMilli()), 0, unchanged(state))
	}
	s.age.Set(state.Now.Sub(state.Until).Seconds())
	if state.Held {
		if state.Now.Sub(state.HeldAt) > abandoned {
			s.logger.Warn("settled tables were left in the middle of a change, building them anew")
			return true, Rebuild(ctx, s.conn, abandoned)
		}
		return false, nil
	}
	if back := s.clock.setBack(state.Now); back > 0 || state.Until.After(state.Now) {
		// Rows may have been stored since that seem to be older than the settlement. It is taken back
		// behind all of them, which is always allowed: what is settled twice changes nothing.
		s.logger.Warn("the clock of ClickHouse was set back, settling again from before that", "by", back)
		until := state.Now
		if state.Until.Before(until) {
			until = state.Until
		}
		return true, s.moveBack(ctx, state, until.Add(-back-s.margin))
	}
	target, err := moment.SettledAt(ctx, s.conn, state.Now.Add(-s.margin-time.Millisecond))
	if err != nil || !target.After(state.Until) {
		return false, err
	}
	next, rows, more, err := s.next(ctx, state.Until, target)
	if err != nil {
		return false, err
	}
	behind := target.Sub(state.Until)
	if patient && (rows == 0 && behind < refresh || rows > 0 && rows < smallStep && behind < smallWait) {
		return false, nil
	}
	return more, s.settle(ctx, state, next, rows)
}

// next chooses how far to settle: all up to target, or less if that is more than a chunk.
func (s *Settler) next(ctx context.Context, from, target time.Time) (until time.Time, rows uint64, more bool, err error) {
	var parts []string
	for _, t := range schema.Settled {
		parts = append(parts, "SELECT toUnixTimestamp64Milli("+t.StoredAt+") AS stored FROM "+t.Source+" WHERE "+within(t.StoredAt))
	}
	found, err := s.conn.Query(ctx, "SELECT intDiv(stored, 1000) AS second, count() FROM ("+strings.Join(parts, " UNION ALL ")+") GROUP BY second ORDER BY second",
		span(from, target)...)
	if err != nil {
		return until, 0, false, fmt.Errorf("settle: look for rows: %w", err)
	}
	defer found.Close()
	until = target
	for found.Next() {
		var second int64
		var count uint64
		if err := found.Scan(&second, &count); err != nil {
			return until, 0, false, err
		}
		if rows > 0 && rows+count > chunkRows {
			return time.UnixMilli(second*1000 - 1), rows, true, nil
		}
		rows += count
	}
	return until, rows, false, found.Err()
}

// moveBack sets the watermark to an earlier instant.
func (s *Settler) moveBack(ctx context.Context, state moment.Settlement, until time.Time) error {
	c, err := s.claim(ctx, state)
	if err != nil {
		return err
	}
	return c.done(ctx, until)
}

// settle is one refresh batch: it writes what was stored after the state's watermark up to until (inclusive), and moves
// the watermark there. The protocol is that of claim.
func (s *Settler) settle(ctx context.Context, state moment.Settlement, until time.Time, rows uint64) error {
	c, err := s.claim(ctx, state)
	if err != nil {
		return err
	}
	if rows > 0 {
		if err := s.resolve(ctx, c, state.Until, until); err != nil {
			return err
		}
		if err := c.nameStarters(ctx, state.Until, until); err != nil {
			return err
		}
		for _, t := range schema.Settled {
			if err := c.insert(ctx, t, state.Until, until, rows); err != nil {
				return err
			}
		}
	}
	if err := c.done(ctx, until); err != nil {
		return err
	}
	s.records.Add(float64(rows))
	if rows >= chunkRows/2 {
		s.logger.Info("settled", "rows", rows, "until", until)
	}
	return nil
}

// insert settles one table. A big chunk is settled partition by partition, to bound memory.
func (c *claim) insert(ctx context.Context, t schema.SettledTable, from, until time.Time, rows uint64) error {
	partitions := []string{""}
	if rows > 2*chunkRows {
		var err error
		if partitions, err = c.partitions(ctx, t, from, until); err != nil {
			return err
		}
	}
	for _, partition := range partitions {
		if err := c.insertPartition(ctx, t, from, until, partition); err != nil {
			return fmt.Errorf("settle: write to %s: %w", t.Table, err)
		}
	}
	return nil
}

func (c *claim) partitions(ctx context.Context, t schema.SettledTable, from, until time.Time) (found []string, err error) {
	err = c.conn.QueryRow(ctx, "SELECT arraySort(groupUniqArray(toString("+t.Partition()+"))) FROM "+t.Source+" WHERE "+within(t.StoredAt), span(from, until)...).Scan(&found)
	return found, err
}

func (c *claim) insertPartition(ctx context.Context, t schema.SettledTable, from, until time.Time, partition string) error {
	stored := within(t.StoredAt)
	known := "organization_id IN (SELECT organization_id FROM " + t.Source + " WHERE " + stored + ")"
	if partition != "" {
		ofPartition := " AND " + t.Partition() + " = " + partition
		stored, known = stored+ofPartition, known+ofPartition
	}
	stored += " AND " + t.Counts
	n := len(t.Columns)
	_, _, names := t.Lists(n)
	sql := "INSERT INTO " + t.Table + " (" + strings.Join(slices.Concat(t.RecordKey(), names), ", ") + ", first_stored_at, sign) " +
		t.Signed(t.Changes(known, stored, "", n)+" HAVING was_settled = 0 OR old_record IS DISTINCT FROM new_record", n, t.RecordKey()...) +
		// Without the claim it writes nothing.
		" WHERE " + c.fence
	ctx = inserting(ctx, clickhouse.Settings{
		// One block: the rows that take a record's old values away and add the new ones are in one part.
		"min_insert_block_size_rows": 1 << 40, "min_insert_block_size_bytes": 0, "max_insert_threads": 1,
		"max_partitions_per_insert_block": 0,
	})
	return c.conn.Exec(ctx, sql, span(from, until)...)
}

// inserting is a context for an insert that derives rows. Its token is new each time, so that ClickHouse takes no insert
// for the repeat of another: the same rows may have to be written again after a record changed there and back.
func inserting(ctx context.Context, more clickhouse.Settings) context.Context {
	settings := clickhouse.Settings{
		"async_insert": 0, "insert_deduplication_token": rand.Text(),
		"enable_shared_storage_snapshot_in_query": 1,

		"max_threads":                        1, // within the share of one core
		"max_bytes_before_external_group_by": 1 << 30,
	}
	maps.Copy(settings, schema.ReadSettings)
	maps.Copy(settings, more)
	return clickhouse.Context(ctx, clickhouse.WithQueryID(moment.SettleQueryPrefix+rand.Text()), clickhouse.WithSettings(settings))
}

// check reports whether the store can settle: a query that reads a settled table twice must see it once.
func (s *Settler) check(ctx context.Context) (bool, error) {
	var known uint64
	if err := s.conn.QueryRow(ctx, "SELECT count() FROM system.settings WHERE name = 'enable_shared_storage_snapshot_in_query'").Scan(&known); err != nil {
		return false, fmt.Errorf("settle: ask for settings: %w", err)
	}
	if known == 0 {
		s.logger.Warn("this ClickHouse is too old to settle records; queries read them all")
	}
	return known > 0, nil
}
