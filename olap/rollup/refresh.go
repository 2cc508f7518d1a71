package rollup

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// Margin is how long ago a row was stored before it is refreshed: rows get the store's clock, and one that is set back
// by less must not move the watermark past a row.
const Margin = snapshot.ClockMargin

const (
	// chunkRows is about how many rows one batch refreshes; more only if they were stored within one second.
	chunkRows = 500_000
	// Fewer rows than smallBatch wait for more, at most smallWait: eight times as many take a batch two or three times as
	// long, and queries wait for its end. With still more, the delta costs queries more than that.
	smallBatch = 8_000
	smallWait  = 10 * time.Second
	// renewAfter is the age at which a watermark is moved although nothing was stored.
	renewAfter = time.Minute
	// quietFor is for how long, by the store's clock, rows are not looked for after none were found. The log and the
	// clock are read at every step: a clock that was set back is to be noticed soon, while of a load the delta has some
	// seconds more.
	quietFor = 5 * time.Second

	refreshes = "refresh" // what a step did that found something to do
)

// A Refresher refreshes the rollup of one store, batch by batch. Several of them on one store do no harm (claim).
type Refresher struct {
	prometheus.Collector // of its metrics

	conn   driver.Conn
	logger *slog.Logger
	margin time.Duration
	// takeOut is that of TakeOutLate; nil to look for nobody.
	takeOut func(context.Context, schema.OrganizationID, string, time.Time) error

	name    int64 // in claims
	did     string
	clock   snapshot.ClockWatch
	quietAt time.Time // when no rows were found last, by the store's clock

	records prometheus.Counter
}

// New returns a Refresher that does nothing yet. margin is Margin but for tests.
func New(conn driver.Conn, logger *slog.Logger, margin time.Duration) *Refresher {
	r := &Refresher{
		conn: conn, logger: logger, margin: margin, name: randomName(),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "runlens_rollup_rows_total",
			Help: "Stored rows whose records were refreshed."}),
	}
	r.Collector = r.records
	return r
}

// Step refreshes the next rows, unless there are so few that it waits for more, and reports whether there may be
// more to do at once.
func (s *Refresher) Step(ctx context.Context) (more bool, err error) {
	if more, err = s.step(ctx, true); atWork(err) {
		s.did = ""
		return false, nil
	}
	return more, err
}

// Did is that of maintain.Task.
func (s *Refresher) Did() string { return s.did }

// Refresh refreshes everything that was stored before the call, but for the margin.
func (s *Refresher) Refresh(ctx context.Context) error {
	for more := true; more; {
		err := patiently(ctx, func() (err error) {
			more, err = s.step(ctx, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Refresher) step(ctx context.Context, patient bool) (more bool, err error) {
	asked := time.Now()
	s.did = ""
	state, err := snapshot.ReadLog(ctx, s.conn)
	if err != nil {
		return false, err
	}
	if state.Number == 0 {
		s.did = refreshes
		return true, writeFirst(ctx, s.conn, state)
	}
	if state.Leased {
		if abandonedLease(state) {
			s.logger.Warn("a process died while it changed the rollup; building the rollup again")
			s.did = refreshes
			return true, Rebuild(ctx, s.conn)
		}
		return false, nil
	}
	before := s.clock
	back, certain := s.clock.Observe(asked, state.Now, time.Now())
	if back > 0 && certain || state.Until.After(state.Now) {
		s.logger.Warn("the clock of ClickHouse was set back; refreshing again from before that", "by", back)
	}
	if back > 0 || state.Until.After(state.Now) {
		// Rows may have been stored since that seem to be older than the watermark. It is moved back before all of them,
		// which is always allowed: what is refreshed twice changes nothing.
		s.did = refreshes
		until := state.Now
		if state.Until.Before(until) {
			until = state.Until
		}
		if err := s.refresh(ctx, state, until.Add(-back-s.margin), 0); err != nil {
			s.clock = before // so that the next step moves it back
			return true, err
		}
		return true, nil
	}
	if since := state.Now.Sub(s.quietAt); patient && since >= 0 && since < quietFor {
		return false, nil
	}
	target, err := snapshot.AwaitInserts(ctx, s.conn, state.Now.Add(-s.margin-time.Millisecond))
	if err != nil || !target.After(state.Until) {
		return false, err
	}
	next, rows, more, err := s.next(ctx, state.Until, target)
	if err != nil {
		return false, err
	}
	if rows == 0 {
		s.quietAt = state.Now
	}
	lag := target.Sub(state.Until)
	if patient && (rows == 0 && lag < renewAfter || rows > 0 && rows < smallBatch && lag < smallWait) {
		return false, nil
	}
	s.did = refreshes
	if rows > 0 && s.takeOut != nil {
		if found, err := s.takeOutLate(ctx, state.Until, next); found || err != nil {
			return true, err
		}
	}
	return more, s.refresh(ctx, state, next, rows)
}

// next chooses how far to refresh: up to target, or less if that is more than a chunk.
func (s *Refresher) next(
	ctx context.Context, from, target time.Time,
) (until time.Time, rows uint64, more bool, err error) {
	var parts sql.Union
	for _, t := range schema.RollupTables {
		parts = append(parts, sql.Select{
			Columns: []string{"toUnixTimestamp64Milli(" + t.StoredAt + ") AS stored"}, From: refreshed(t.Source),
			Where: []string{within(t.Source)},
		})
	}
	counted := sql.Select{
		Columns: []string{"intDiv(stored, 1000) AS second", "count()"}, From: sql.Query(parts),
		Group: []string{"second"}, Order: []string{"second"},
	}
	found, err := s.conn.Query(ctx, counted.String(), span(from, target)...)
	if err != nil {
		return until, 0, false, fmt.Errorf("rollup: read rows: %w", err)
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

// refresh is one refresh batch: it writes the rows that were stored after the state's watermark up to until
// (inclusive), and moves the watermark there; without rows it may also move it back. claim has the protocol.
func (s *Refresher) refresh(ctx context.Context, state snapshot.Log, until time.Time, rows uint64) error {
	c, err := takeClaim(ctx, s.conn, state, s.name)
	if err != nil {
		return err
	}
	if !state.Until.After(time.UnixMilli(0)) {
		if err := waitForMutations(ctx, s.conn); err != nil { // of a rebuild that died (Change)
			return err
		}
	}
	if rows > 0 {
		if err := s.resolve(ctx, c, state.Until, until); err != nil {
			return err
		}
		if err := c.name(ctx, within(schema.TableRuns), span(state.Until, until)...); err != nil {
			return err
		}
		for _, t := range schema.RollupTables {
			if err := c.insert(ctx, t, state.Until, until, rows); err != nil {
				return err
			}
		}
	}
	if err := c.commit(ctx, until); err != nil {
		return err
	}
	s.records.Add(float64(rows))
	if rows >= chunkRows/2 {
		s.logger.Info("refreshed the rollup", "rows", rows, "until", until)
	}
	return nil
}
