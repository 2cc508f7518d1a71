package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A Counters tells whether anything happened to the records of an organization in a source, or to what is refreshed.
type Counters struct {
	Now     time.Time // the store's clock; whatever was acknowledged before is counted. Zero before the first mark
	Records Count     // no insert into the source ended while it is the same
	Marks   Count     // nobody began to refresh, or to change what is refreshed, while it is the same
}

// A Count is of rows that were ever stored. An insert counts before it ends.
type Count struct {
	rows   uint64
	latest int64 // when the last of them were stored, in Unix milliseconds
}

// Since is how many rows were stored between an earlier count and this one.
func (c Count) Since(earlier Count) uint64 { return c.rows - earlier.rows }

// Quiet is for how long nothing has been stored of the organization's records.
func (s Counters) Quiet() time.Duration { return s.Now.Sub(time.UnixMilli(s.Records.latest)) }

// StoredUntil reports whether all of the organization's records were stored until an instant, inclusive.
func (s Counters) StoredUntil(at time.Time) bool { return s.Records.latest <= at.UnixMilli() }

// ReadCounters reads the counters of an organization.
func ReadCounters(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, source string) (Counters, error) {
	return readCounters(ctx, conn, source, "organization_id IN ({organization:String}, '')", clickhouse.Named("organization", string(organization)))
}

// ReadInsertCounter reads it without Marks, in four fifths of the time. Now is zero before the first row.
func ReadInsertCounter(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, source string) (Counters, error) {
	return readCounters(ctx, conn, source, ofOrganization, clickhouse.Named("organization", string(organization)))
}

// ReadLogCounter reads Marks alone, likewise.
func ReadLogCounter(ctx context.Context, conn driver.Conn) (Count, error) {
	s, err := readCounters(ctx, conn, "", "organization_id = ''")
	return s.Marks, err
}

// Reads reports whether a statement has read more than some rows. It does not where the statement is not seen: it has ended, or runs on
// another node.
func Reads(ctx context.Context, conn driver.Conn, queryID uuid.UUID, rows int) (reads bool, err error) {
	err = conn.QueryRow(oneThread(ctx), "SELECT count() > 0 FROM system.processes WHERE query_id = {id:String} AND read_rows > {rows:Int64}",
		clickhouse.Named("id", queryID.String()), clickhouse.Named("rows", int64(rows))).Scan(&reads)
	if err != nil {
		return false, failure.Of("look at a statement", err)
	}
	return reads, nil
}

// readCounters adds nothing up in SQL: there are a few rows a count, and every function in the text costs ClickHouse more than they do.
func readCounters(ctx context.Context, conn driver.Conn, source, where string, args ...any) (s Counters, err error) {
	rows, err := conn.Query(oneThread(ctx), "SELECT now64(3, 'UTC'), source, rows, last_stored_at FROM "+schema.TableInsertCounters+" WHERE "+where, args...)
	if err != nil {
		return s, failure.Of("read the counters", err)
	}
	defer rows.Close()
	for rows.Next() {
		var of string
		var stored uint64
		var at time.Time
		if err := rows.Scan(&s.Now, &of, &stored, &at); err != nil {
			return s, failure.Of("read the counters", err)
		}
		switch of {
		case source:
			s.Records.add(stored, at)
		case schema.TableRollupLog:
			s.Marks.add(stored, at)
		}
	}
	if err := rows.Err(); err != nil {
		return s, failure.Of("read the counters", err)
	}
	return s, nil
}

func (c *Count) add(rows uint64, at time.Time) {
	c.rows, c.latest = c.rows+rows, max(c.latest, at.UnixMilli())
}
