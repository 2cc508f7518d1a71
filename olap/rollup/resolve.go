package rollup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	// allRows is how many records of the organizations are looked at together at most, which takes about 50 bytes of
	// memory for each.
	allRows = 20_000_000
	// allPerRow is how many times as many they may be as those that were stored: to look at all takes a third of the time
	// a record.
	allPerRow = 2
)

// Resolve makes every record of which a row was stored since an instant, inclusive, count once, where its source broke
// what contract 3 calls immutable (contract 4.20). It is what the next refresh does first, for whoever stored the rows
// and does not want to wait for that: they have to be acknowledged. What was refreshed since is left out. found says
// that there are attribution records of which some copies do not count; servers know that within snapshot.OverviewAge.
//
// It reads without a claim, and takes one where there is something to write (resolve).
func (s *Refresher) Resolve(ctx context.Context, since time.Time) (found bool, err error) {
	state, err := snapshot.ReadLog(ctx, s.conn)
	if err != nil {
		return false, err
	}
	from, end := since.Add(-time.Millisecond), state.Now // spans begin after an instant
	// A watermark after the clock, which was set back, says nothing of what was stored since.
	if state.Until.After(from) && !state.Until.After(end) {
		from = state.Until
	}
	if clean, err := s.clean(ctx, from, end); clean || err != nil {
		return false, err
	}
	for more := true; more; {
		var until time.Time
		var rows uint64
		if until, rows, more, err = s.next(ctx, from, end); err != nil || rows == 0 {
			return found, err
		}
		runs, attributions, err := s.look(ctx, false, from, until)
		if err == nil && (runs || attributions) {
			err = s.resolvePatiently(ctx, from, until)
		}
		if err != nil {
			return found, err
		}
		found, from = found || attributions, until
	}
	return found, nil
}

// Noted reports whether somebody noted conflicts since an instant, inclusive, and so lately that a server may not know
// of them yet (snapshot.OverviewAge). A refresh does so for rows that Resolve leaves out then.
func (s *Refresher) Noted(ctx context.Context, since time.Time) (noted bool, err error) {
	lately := sql.Select{
		Columns: []string{"count() > 0"}, From: refreshed(schema.TableInsertCounters),
		Where: []string{"source = '" + schema.TableConflicts + "'", "toUnixTimestamp64Milli(last_stored_at) >= {since:Int64}",
			"last_stored_at >= now64(3, 'UTC') - toIntervalMillisecond({age:Int64})"},
	}
	err = s.conn.QueryRow(ctx, lately.String(), clickhouse.Named("since", since.UnixMilli()),
		clickhouse.Named("age", snapshot.OverviewAge.Milliseconds())).Scan(&noted)
	if err != nil {
		err = fmt.Errorf("rollup: look for new conflicts: %w", err)
	}
	return noted, err
}

// clean reports whether it is sure that there are no conflicts among the records of which a row was stored in a span.
func (s *Refresher) clean(ctx context.Context, from, until time.Time) (bool, error) {
	var counts []string
	for _, t := range schema.RollupTables {
		stored := within(t.Source)
		organizations := sql.Select{Columns: []string{"organization_id"}, From: refreshed(t.Source), Where: []string{stored}}
		for _, where := range []string{stored, "organization_id IN" + sql.In(organizations)} {
			count := sql.Select{Columns: []string{"count()"}, From: refreshed(t.Source), Where: []string{where}}
			counts = append(counts, "("+count.String()+")")
		}
	}
	var rows, all [2]uint64
	err := s.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings)),
		sql.Select{Columns: counts}.String(), span(from, until)...).Scan(&rows[0], &all[0], &rows[1], &all[1])
	if err != nil {
		return false, fmt.Errorf("rollup: count what was stored: %w", err)
	}
	for i := range rows {
		if all[i] > allRows || all[i] > allPerRow*rows[i] {
			return false, nil
		}
	}
	runs, attributions, err := s.look(ctx, true, from, until)
	return !runs && !attributions, err
}

// look reports whether there are conflicts among the records of which a row was stored in a span, or among all of their
// organizations.
func (s *Refresher) look(ctx context.Context, all bool, from, until time.Time) (runs, attributions bool, err error) {
	anyOf := func(selected sql.Select) string {
		return "(" + sql.Select{Columns: []string{"count() > 0"}, From: sql.Query(selected)}.String() + ")"
	}
	looked := sql.Select{Columns: []string{
		anyOf(schema.SupersededRuns(refreshed, schema.Among{Stored: within(schema.TableRuns), All: all})),
		anyOf(schema.SeveralAttributions(refreshed, schema.Among{Stored: within(schema.TableAttributions), All: all})),
	}}
	err = s.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings)), looked.String(),
		span(from, until)...).Scan(&runs, &attributions)
	if err != nil {
		err = fmt.Errorf("rollup: look for conflicts: %w", err)
	}
	return runs, attributions, err
}

// resolvePatiently resolves conflicts when it gets the claim.
func (s *Refresher) resolvePatiently(ctx context.Context, from, until time.Time) error {
	return patiently(ctx, func() error {
		state, err := snapshot.ReadLog(ctx, s.conn)
		switch {
		case err != nil:
		case state.Number == 0:
			err = writeFirst(ctx, s.conn, state)
		case abandonedLease(state): // there may be no server that would do it
			err = Rebuild(ctx, s.conn)
		}
		if err != nil {
			return err
		}
		c, err := s.awaitClaim(ctx)
		if err != nil {
			return err
		}
		if err = s.resolve(ctx, c, from, until); err == nil {
			err = c.check(ctx) // what was sent after the claim was lost wrote nothing
		}
		return errors.Join(err, c.end(ctx))
	})
}
