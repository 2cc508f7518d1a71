package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/elapsed"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/parts"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	// OverviewAge is how long an overview is believed, which decides between ways to the same answer, and how long it may
	// take until attribution records with conflicts are collapsed.
	OverviewAge = 10 * time.Second
	// countedFrom is the number of rows from which the size of an organization's records matters.
	countedFrom = 10_000
	// maxActive is of how many organizations it is read that rows arrive, and maxActiveBytes what is cached of them.
	maxActive      = 10_000
	maxActiveBytes = 16 << 20
)

// counted are the rows that count inserts. Of more than so many, the counts of all organizations are read.
var counted = parts.Table{Name: schema.TableInsertCounters, Column: "organization_id", Most: 5_000}

// activeFor is for how long more rows of an organization are expected after the last ones.
func activeFor(margin time.Duration) time.Duration { return 5 * margin }

// A Size is about how many records an organization has.
type Size struct {
	Records   uint64 // rows that were ever inserted, repeats and later versions too; 0 for a few
	Conflicts bool   // attribution records have several contents or clocks (schema.TableConflicts)
}

// overviews caches what was read of all organizations: of which more than a few rows were inserted, as of the last
// overview that found rows of them, and which of them have conflicts.
//
// A size decides between ways to the same answer: should one be wrong, it costs time. Conflicts change answers, so they
// are all read every time, beside what the counts of a snapshot say (Snapshot.Conflicts).
type overviews struct {
	maxAge  time.Duration // OverviewAge but for tests
	reading cache.Group[struct{}]

	mu        sync.Mutex
	sizes     map[Records]uint64
	conflicts map[schema.OrganizationID]bool
	state     parts.State // of the counts, before the sizes were read
	at        time.Time   // when it had been asked for
}

// Size returns the size of an organization's records, of a few seconds ago.
func (v *View) Size(ctx context.Context, of Records) (Size, error) {
	o := &v.overview
	o.mu.Lock()
	fresh := elapsed.Between(o.at, time.Now()) < o.maxAge
	o.mu.Unlock()
	if !fresh {
		if err := v.readOverview(ctx); err != nil {
			return Size{}, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return Size{o.sizes[of], of.Source == schema.TableAttributions && o.conflicts[of.Organization]}, nil
}

// Pause returns how long to wait between two overviews.
func (v *View) Pause() time.Duration { return v.overview.maxAge / 2 }

// Follow reads an overview and the inserts in flight, so that the first query of an organization need not wait for
// either.
func (v *View) Follow(ctx context.Context) error {
	if err := v.readOverview(ctx); err != nil {
		return err
	}
	_, err := v.Take(ctx, InFlight)
	return err
}

// Silent reports whether ClickHouse has answered nothing for the time of four of Follow's readings. It does so within
// milliseconds unless it stands still or has far too much to do, whatever it was asked.
func (v *View) Silent() bool {
	last := v.last.Load()
	return last != nil && time.Since(last.at) > 2*v.overview.maxAge
}

// readOverview reads the counts of the organizations of which rows came since the last time, of all where that is not
// known.
func (v *View) readOverview(ctx context.Context) error {
	_, err := v.overview.reading.Do(ctx, cache.Key{}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, failure.Within(ctx, v.patience, v.renewOverview)
	})
	return err
}

func (v *View) renewOverview(ctx context.Context) error {
	o, at := &v.overview, time.Now()
	o.mu.Lock()
	state := o.state
	o.mu.Unlock()
	changes, err := counted.Changed(ctx, v.conn, state)
	if err != nil {
		return failure.Of("read which organizations have more rows", err)
	}
	of := named(changes)
	read, err := readOverview(ctx, v.conn, of, activeFor(v.margin), maxActive)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conflicts = read.conflicts; of.All {
		o.sizes = read.sizes
	} else {
		maps.Copy(o.sizes, read.sizes)
	}
	o.state, o.at = changes.State, at
	for organization := range read.active {
		v.isActive(organization)
	}
	return nil
}

// mostNamed is how many bytes the names of organizations have at most in a statement, each with its quotes and comma:
// half of what ClickHouse takes as the value of a parameter over HTTP.
const mostNamed = 64 << 10

// named are changes with each organization once, or of all where a statement cannot name them.
func named(changes parts.Changes) parts.Changes {
	changes.Values = slices.Compact(slices.Sorted(slices.Values(changes.Values)))
	bytes := 0
	for _, name := range changes.Values {
		bytes += len(name) + len("'',")
	}
	changes.All = changes.All || bytes > mostNamed
	return changes
}

// An overview is what was read of organizations of which rows came.
type overview struct {
	sizes     map[Records]uint64
	conflicts map[schema.OrganizationID]bool // of all
	active    map[schema.OrganizationID]bool // of which rows were stored within a while
}

func (v *View) isActive(organization schema.OrganizationID) {
	v.active.Put(string(organization), cache.KeyOf([]byte(organization)), struct{}{}, 0)
}

// conflicting is what stands in the place of a source where an organization has conflicts.
const conflicting = "conflicts"

// readOverview reads the sizes of records of which more than a few rows were inserted, in which organizations records
// have conflicts, and of which organizations, most at most, rows were stored within a while.
func readOverview(ctx context.Context, conn driver.Conn, of parts.Changes, within time.Duration, most int) (
	read overview, err error,
) {
	all := sql.Union{{
		Distinct: true,
		Columns: []string{"'" + conflicting + "' AS source", "organization_id", "toUInt64(0) AS inserted",
			"false AS active"},
		From: ofStore(schema.TableConflicts), Where: []string{"kind = '" + schema.ConflictAttribution + "'"},
	}}
	if of.All || len(of.Values) > 0 {
		counted := sql.Select{
			Columns: []string{"toString(source)", "organization_id", "sum(rows) AS inserted",
				fmt.Sprintf("max(last_stored_at) > now64(3, 'UTC') - toIntervalMillisecond(%d) AS active", within.Milliseconds())},
			From: ofStore(schema.TableInsertCounters), Where: []string{"organization_id != ''"},
			Group:  []string{"source", "organization_id"},
			Having: fmt.Sprintf("inserted >= %d OR active", countedFrom),
		}
		if !of.All {
			counted.Where = append(counted.Where, "organization_id IN {organizations:Array(String)}")
		}
		all = append(all, counted)
	}
	var found []struct {
		Source       string `ch:"source"`
		Organization string `ch:"organization_id"`
		Inserted     uint64 `ch:"inserted"`
		Active       bool   `ch:"active"`
	}
	var args []any
	if !of.All {
		args = append(args, clickhouse.Named("organizations", of.Values))
	}
	if err := conn.Select(oneThread(ctx), &found, all.String(), args...); err != nil {
		return read, failure.Of("read the sizes of organizations", err)
	}
	read = overview{
		sizes: map[Records]uint64{}, conflicts: map[schema.OrganizationID]bool{}, active: map[schema.OrganizationID]bool{},
	}
	for _, f := range found {
		organization := schema.OrganizationID(f.Organization)
		switch {
		case f.Source == conflicting:
			read.conflicts[organization] = true
		case f.Inserted >= countedFrom:
			read.sizes[Records{organization, f.Source}] = f.Inserted
		}
		if f.Active && len(read.active) < most {
			read.active[organization] = true
		}
	}
	return read, nil
}

// Counted reports whether all inserts are counted: whether the store has every view that counts them.
func (v *View) Counted(ctx context.Context) (counted bool, err error) {
	err = failure.Within(ctx, v.patience, func(ctx context.Context) error {
		err := v.conn.QueryRow(ctx, "SELECT uniqExact(name) = {views:UInt64} FROM system.tables"+
			" WHERE database = currentDatabase() AND engine = 'MaterializedView' AND name IN {names:Array(String)}",
			clickhouse.Named("views", uint64(len(schema.CountingViews))), clickhouse.Named("names", schema.CountingViews)).
			Scan(&counted)
		if err != nil {
			return failure.Of("look for the views that count inserts", err)
		}
		return nil
	})
	return counted, err
}
