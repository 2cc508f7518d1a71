package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// ClockMargin is by how much the store's clock may be set back unnoticed: what was stored since an instant is looked
// for from so much before it.
const ClockMargin = 2 * time.Second

// Records names the records of an organization in a source table.
type Records struct {
	Organization schema.OrganizationID
	Source       string
}

// Place is where a cache has what it knows of the records. The key alone is of no other records either.
func (r Records) Place() (owner string, key cache.Key) {
	return string(r.Organization), cache.KeyOf([]byte(r.Organization), []byte(r.Source))
}

// Counters say whether anything was stored, or the rollup log written, since they were read before.
type Counters struct {
	Now     time.Time // the store's clock; whatever was acknowledged before is counted. Zero before the first row
	Records Count     // no insert of these records ended while it is the same
	Log     Count     // no entry of the rollup log was written while it is the same
	started time.Time // when ClickHouse was started
	failed  failures
}

// Same reports whether nothing was stored, nor the log written, between two readings.
func (c Counters) Same(other Counters) bool {
	return c.Records == other.Records && c.Log == other.Log && sameStart(c.started, other.started) &&
		c.failed.same(other.failed)
}

// sameStart reports whether two readings are of one start of ClickHouse, which tells its age in seconds: counts that
// were not synced are lost with the power. A machine takes longer than this tolerance to come back.
func sameStart(a, b time.Time) bool { return a.Sub(b).Abs() <= 2*time.Second }

// A Count is of rows that were ever inserted. An insert counts before it is acknowledged.
type Count struct {
	rows   uint64
	latest int64 // when the last of them were stored, in Unix milliseconds
}

// Since is how many rows were inserted between an earlier count and this one.
func (c Count) Since(earlier Count) uint64 { return c.rows - earlier.rows }

// Clock is the store's clock, or when the newest of the records was stored if the clock was set back since: rows that
// were acknowledged before the reading have no later stamps. Zero before the first row.
func (c Counters) Clock() time.Time {
	if newest := time.UnixMilli(c.Records.latest).UTC(); !c.Now.IsZero() && newest.After(c.Now) {
		return newest
	}
	return c.Now
}

// Idle is for how long nothing has been stored of the records.
func (c Counters) Idle() time.Duration { return c.Now.Sub(time.UnixMilli(c.Records.latest)) }

// StoredUntil reports whether all of the records were stored until an instant, inclusive.
func (c Counters) StoredUntil(at time.Time) bool { return c.Records.latest <= at.UnixMilli() }

// ReadCounters reads the counters of an organization's records and of the rollup log.
func ReadCounters(ctx context.Context, conn driver.Conn, of Records) (Counters, error) {
	return readCounters(ctx, conn, of, "organization_id IN ({organization:String}, '')")
}

// ReadInsertCounter reads them without Log, in four fifths of the time.
func ReadInsertCounter(ctx context.Context, conn driver.Conn, of Records) (Counters, error) {
	return readCounters(ctx, conn, of, schema.OfOrganization)
}

func readCounters(ctx context.Context, conn driver.Conn, of Records, where string) (c Counters, err error) {
	rows, failed, err := readCounts(ctx, conn, where, clickhouse.Named("organization", string(of.Organization)))
	c.failed = failed
	for _, row := range rows {
		c.Now, c.started = row.Now, row.started()
		switch row.Source {
		case of.Source:
			c.Records.add(row)
		case schema.TableRollupLog:
			c.Log.add(row)
		}
	}
	return c, err
}

// A countRow is a row of the table insert_counters, of which a count has a few.
type countRow struct {
	Now          time.Time `ch:"now"`
	Uptime       uint32    `ch:"uptime"`
	Source       string    `ch:"source"`
	Organization string    `ch:"organization_id"`
	Rows         uint64    `ch:"rows"`
	LastStoredAt time.Time `ch:"last_stored_at"`
	Failed       uint64    `ch:"failed"`
}

const readRows = "SELECT now64(3, 'UTC') AS now, uptime() AS uptime, source, organization_id, rows, last_stored_at, " +
	"%s AS failed FROM " + schema.TableInsertCounters + " WHERE "

// readCounts reads rows of insert_counters, and the inserts that failed. They are summed in Go: every function in the
// text costs ClickHouse more.
func readCounts(ctx context.Context, conn driver.Conn, where string, parameter any) (
	rows []countRow, failed failures, err error,
) {
	err = conn.Select(OneThread(ctx), &rows, fmt.Sprintf(readRows, "("+readFailures+")")+where, parameter)
	if refused(err) {
		err = conn.Select(OneThread(ctx), &rows, fmt.Sprintf(readRows, "toUInt64(0)")+where, parameter)
		failed.unknown = true
	}
	switch {
	case err != nil:
		return nil, failed, failure.Of("read the insert counters", err)
	case len(rows) == 0 && !failed.unknown:
		failed, err = failedInserts(ctx, conn)
		return nil, failed, err
	case len(rows) > 0:
		failed.n = rows[0].Failed
	}
	return rows, failed, nil
}

// started is when ClickHouse was started, from its clock and its age in seconds.
func (r countRow) started() time.Time { return r.Now.Add(-time.Duration(r.Uptime) * time.Second) }

func (c *Count) add(row countRow) {
	c.rows, c.latest = c.rows+row.Rows, max(c.latest, row.LastStoredAt.UnixMilli())
}

// readActive reads of which records rows were stored within a while, of at most so many.
func readActive(ctx context.Context, conn driver.Conn, within time.Duration, most int) (active []Records, err error) {
	var found []struct {
		Source       string `ch:"source"`
		Organization string `ch:"organization_id"`
	}
	err = conn.Select(OneThread(ctx), &found, fmt.Sprintf("SELECT DISTINCT toString(source) AS source, organization_id"+
		" FROM %s WHERE last_stored_at > now64(3, 'UTC') - toIntervalMillisecond(%d) LIMIT %d", schema.TableInsertCounters,
		within.Milliseconds(), most))
	if err != nil {
		return nil, failure.Of("read which organizations are active", err)
	}
	for _, f := range found {
		active = append(active, Records{schema.OrganizationID(f.Organization), f.Source})
	}
	return active, nil
}
