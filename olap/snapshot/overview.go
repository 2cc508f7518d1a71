package snapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

const (
	// overviewAge is how long an overview is believed, which decides between ways to the same answer, and how long it may
	// take until attribution records with conflicts are collapsed.
	overviewAge = 10 * time.Second
	// countedFrom is the number of rows from which the size of an organization's records matters.
	countedFrom = 10_000
	// maxActive is of how many organizations it is read that rows arrive, and maxActiveBytes what is cached of them.
	maxActive      = 10_000
	maxActiveBytes = 16 << 20
)

// activeFor is for how long more rows of an organization are expected after the last ones.
func activeFor(idleFrom time.Duration) time.Duration { return 5 * idleFrom }

// A Size is about how many records an organization has.
type Size struct {
	Records   uint64 // rows that were ever inserted, repeats and later versions too; 0 for a few
	Conflicts bool   // attribution records have several contents or clocks (schema.TableConflicts)
}

// overviews caches what was read of all organizations at once.
type overviews struct {
	maxAge  time.Duration // overviewAge but for tests
	reading cache.Group[map[Records]Size]

	mu     sync.Mutex
	cached map[Records]Size
	at     time.Time // when it had been asked for
}

// Size returns the size of an organization's records, of a few seconds ago.
func (v *View) Size(ctx context.Context, of Records) (Size, error) {
	o := &v.overview
	o.mu.Lock()
	known, fresh := o.cached, time.Since(o.at) < o.maxAge
	o.mu.Unlock()
	if !fresh {
		var err error
		if known, err = v.readOverview(ctx); err != nil {
			return Size{}, err
		}
	}
	return known[of], nil
}

// Pause returns how long to wait between two overviews.
func (v *View) Pause() time.Duration { return v.overview.maxAge / 2 }

// Follow reads an overview and the inserts in flight, so that the first query of an organization need not wait for
// either.
func (v *View) Follow(ctx context.Context) error {
	if _, err := v.readOverview(ctx); err != nil {
		return err
	}
	_, err := v.Take(ctx, InFlight)
	return err
}

func (v *View) readOverview(ctx context.Context) (map[Records]Size, error) {
	o := &v.overview
	return o.reading.Do(ctx, cache.Key{}, func(ctx context.Context) (map[Records]Size, error) {
		at := time.Now()
		read, active, err := readOverview(ctx, v.conn, activeFor(v.idleFrom), maxActive)
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		o.cached, o.at = read, at
		o.mu.Unlock()
		for _, organization := range active {
			v.isActive(organization)
		}
		return read, nil
	})
}

func (v *View) isActive(organization schema.OrganizationID) {
	v.active.Put(string(organization), cache.KeyOf([]byte(organization)), struct{}{}, 0)
}

// readOverview reads the sizes of records of which more than a few rows were inserted, or which have conflicts, and of
// which organizations, most at most, rows were stored within a while.
func readOverview(ctx context.Context, conn driver.Conn, within time.Duration, most int) (
	sizes map[Records]Size, active []schema.OrganizationID, err error,
) {
	var found []struct {
		Source       string `ch:"source"`
		Organization string `ch:"organization_id"`
		Inserted     uint64 `ch:"inserted"`
		Conflicts    bool   `ch:"conflicts"`
	}
	err = conn.Select(OneThread(ctx), &found, fmt.Sprintf("SELECT toString(source) AS source, organization_id,"+
		" sum(rows) AS inserted, false AS conflicts FROM %[1]s WHERE organization_id != ''"+
		" GROUP BY source, organization_id HAVING inserted >= %[2]d"+
		" UNION ALL SELECT DISTINCT '%[3]s', organization_id, 0, true FROM %[4]s WHERE kind = '%[5]s'"+
		" UNION ALL SELECT '', organization_id, 0, false FROM (SELECT DISTINCT organization_id FROM %[1]s"+
		" WHERE organization_id != '' AND last_stored_at > now64(3, 'UTC') - toIntervalMillisecond(%[6]d) LIMIT %[7]d)",
		schema.TableInsertCounters, countedFrom, schema.TableAttributions, schema.TableConflicts,
		schema.ConflictAttribution, within.Milliseconds(), most))
	if err != nil {
		return nil, nil, failure.Of("read the sizes of organizations", err)
	}
	sizes = map[Records]Size{}
	for _, f := range found {
		of := Records{schema.OrganizationID(f.Organization), f.Source}
		if f.Source == "" {
			active = append(active, of.Organization)
			continue
		}
		known := sizes[of]
		sizes[of] = Size{max(known.Records, f.Inserted), known.Conflicts || f.Conflicts}
	}
	return sizes, active, nil
}

// Counted reports whether all inserts are counted: whether the store has every view that counts them.
func (v *View) Counted(ctx context.Context) (counted bool, err error) {
	err = v.conn.QueryRow(ctx, "SELECT uniqExact(name) = {views:UInt64} FROM system.tables"+
		" WHERE database = currentDatabase() AND engine = 'MaterializedView' AND name IN {names:Array(String)}",
		clickhouse.Named("views", uint64(len(schema.CountingViews))), clickhouse.Named("names", schema.CountingViews)).
		Scan(&counted)
	if err != nil {
		return false, failure.Of("look for the views that count inserts", err)
	}
	return counted, nil
}
