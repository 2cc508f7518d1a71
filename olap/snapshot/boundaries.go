package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
)

const (
	// maxReadings is of how many organizations and sources the last reading is cached: a few MiB.
	maxReadings = 10_000
	readingAge  = time.Hour
	// idleFrom is how long ago the last row of an organization was stored where no other is expected at any time.
	idleFrom = time.Second
	// freshFor is how old the boundary of a reading may be: requests in such quick succession share one.
	freshFor = 50 * time.Millisecond
	// safety is by how much a boundary lies before the store's clock as the last reading gives it. The reading that
	// confirms it runs in parallel with the query, and finds it in the past already.
	safety = 2 * time.Millisecond
)

// Boundaries sets inclusion boundaries of first pages without waiting, where nothing was stored of an organization
// recently. Waiting for one (PageBoundary) takes a third of the time of a small query (schema/decisions/as-of.md).
type Boundaries struct {
	conn     driver.Conn
	readings *cache.Cache[Records, reading]
	IdleFrom time.Duration // idleFrom but for tests
}

// NewBoundaries returns Boundaries without any reading.
func NewBoundaries(conn driver.Conn) *Boundaries {
	return &Boundaries{conn: conn, readings: cache.New[Records, reading](maxReadings, readingAge), IdleFrom: idleFrom}
}

// A reading is what was being stored at an instant. Nothing with a stamp before oldest can appear any more. The inserts
// in flight are read first: one that is not among them, and ended since an earlier reading, is counted.
type reading struct {
	oldest   time.Time // begin of the oldest insert in flight
	counters Counters  // without Log
	at       time.Time // by this server's clock, when the counters had been read
}

// now is the store's clock, rather a little earlier than later.
func (r reading) now() time.Time { return r.counters.Now.Add(time.Since(r.at)) }

// boundary is an instant until which everything stored was visible to the reading, and is all there will be.
func (r reading) boundary() time.Time {
	return r.oldest.Add(-time.Millisecond).Truncate(time.Millisecond)
}

// fresh reports whether boundary is recent, and has all of the organization's records.
func (r reading) fresh() bool {
	return r.now().Sub(r.boundary()) < freshFor && r.counters.StoredUntil(r.boundary())
}

// An IdleBoundary is a boundary that pages can share once it is confirmed.
type IdleBoundary struct {
	AsOf  time.Time
	of    Records
	last  reading // from which it was set
	fresh bool    // it is the reading's own boundary
}

// Idle returns a boundary for a query that begins now. Where no reading says that the records are idle, ok is false,
// and Look should be called in parallel with the query, for the next one.
func (b *Boundaries) Idle(of Records) (boundary IdleBoundary, ok bool) {
	last, known := b.readings.Get(of)
	if !known || last.counters.Idle() < b.IdleFrom {
		return IdleBoundary{}, false
	}
	if last.fresh() {
		return IdleBoundary{last.boundary(), of, last, true}, true
	}
	return IdleBoundary{last.now().Add(-safety).Truncate(time.Millisecond), of, last, false}, true
}

// Look reads what is being stored and caches it.
func (b *Boundaries) Look(ctx context.Context, of Records) error {
	_, err := b.read(ctx, of)
	return err
}

func (b *Boundaries) read(ctx context.Context, of Records) (seen reading, err error) {
	inserts, err := InFlight(ctx, b.conn)
	if err != nil {
		return seen, err
	}
	counters, err := ReadInsertCounter(ctx, b.conn, of)
	if err != nil {
		return seen, err
	}
	seen = reading{inserts.Oldest, counters, time.Now()}
	b.readings.Put(of, seen)
	return seen, nil
}

// Confirm reports whether pages can share a boundary. It may run before, beside or after the query, in any order: a row
// with a stamp at or before the boundary was visible to the last reading, or is found here, in flight or counted.
//
//  1. The reading's own boundary can be shared if no record was counted since: all that was stored until then was
//     visible to the reading.
//  2. Any other one can if in addition no insert in flight began at or before it. Such inserts, of whatever
//     organization, are waited for. If one takes too long, waited is a boundary that can be shared by a query that
//     begins now.
func (b *Boundaries) Confirm(ctx context.Context, boundary IdleBoundary) (confirmed bool, waited time.Time, err error) {
	if boundary.fresh {
		counters, err := ReadInsertCounter(ctx, b.conn, boundary.of)
		return err == nil && counters.Records == boundary.last.counters.Records, waited, err
	}
	seen, err := b.read(ctx, boundary.of)
	if err == nil && !seen.oldest.After(boundary.AsOf) {
		if waited, err = AwaitInserts(ctx, b.conn, boundary.AsOf); err != nil || waited.Before(boundary.AsOf) {
			return false, waited, err
		}
		waited = time.Time{}
		seen, err = b.read(ctx, boundary.of)
	}
	return err == nil && seen.counters.Records == boundary.last.counters.Records, waited, err
}
