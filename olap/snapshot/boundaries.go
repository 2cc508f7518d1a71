package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
)

const (
	// maxLooks is of how many organizations and sources the last look is cached: a few MiB.
	maxLooks = 10_000
	lookAge  = time.Hour
	// idleFrom is how long ago the last row of an organization was stored where no other is expected at any moment.
	idleFrom = time.Second
	// freshFor is how old the boundary of a look may be: requests in such quick succession share one.
	freshFor = 50 * time.Millisecond
	// safety is by how much a boundary lies before the store's clock as the last look gives it. The look that confirms
	// it runs beside the query, and finds it in the past already.
	safety = 2 * time.Millisecond
)

// Boundaries sets inclusion boundaries of first pages without waiting, where nothing has been stored of an organization
// of late. To wait for one (PageBoundary) takes a third of the time of a small query (decisions/idle-boundaries.md).
type Boundaries struct {
	conn     driver.Conn
	looks    *cache.Cache[Records, look]
	IdleFrom time.Duration // idleFrom but for tests
}

// NewBoundaries returns Boundaries without any look.
func NewBoundaries(conn driver.Conn) *Boundaries {
	return &Boundaries{conn: conn, looks: cache.New[Records, look](maxLooks, lookAge), IdleFrom: idleFrom}
}

// A look is what was being stored at an instant. Nothing with a stamp before oldest can appear any more. The inserts in
// flight are read first: one that is not among them, and ended since an earlier look, is counted.
type look struct {
	oldest   time.Time // begin of the oldest insert in flight
	counters Counters  // without Log
	at       time.Time // by this server's clock, when the counters were known
}

// now is the store's clock, rather a little earlier than later.
func (l look) now() time.Time { return l.counters.Now.Add(time.Since(l.at)) }

// boundary is an instant until when everything stored was there at the look, and is all there will be.
func (l look) boundary() time.Time { return l.oldest.Add(-time.Millisecond).Truncate(time.Millisecond) }

// fresh reports whether boundary is recent, and has all of the organization's records.
func (l look) fresh() bool {
	return l.now().Sub(l.boundary()) < freshFor && l.counters.StoredUntil(l.boundary())
}

// An IdleBoundary is a boundary that pages can share once it is confirmed.
type IdleBoundary struct {
	AsOf  time.Time
	of    Records
	last  look // from which it was set
	fresh bool // it is the look's own boundary
}

// Idle returns a boundary for a query that begins now. Where the records are not known to be idle, ok is false, and
// Look should be called beside the query, for the next one.
func (b *Boundaries) Idle(of Records) (boundary IdleBoundary, ok bool) {
	last, known := b.looks.Get(of)
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
	_, err := b.look(ctx, of)
	return err
}

func (b *Boundaries) look(ctx context.Context, of Records) (seen look, err error) {
	inserts, err := InFlight(ctx, b.conn)
	if err != nil {
		return seen, err
	}
	counters, err := ReadInsertCounter(ctx, b.conn, of)
	if err != nil {
		return seen, err
	}
	seen = look{inserts.Oldest, counters, time.Now()}
	b.looks.Put(of, seen)
	return seen, nil
}

// Confirm reports whether pages can share a boundary whose query is running or has ended. It may begin beside the
// query, but its answer holds only for a query that had begun by then.
//
//  1. The look's own boundary can be shared if no record was counted since the look: all that was stored until then was
//     there at the look.
//  2. Any other one can if besides no insert in flight began at or before it. Such inserts, of whatever organization,
//     are waited for. If one takes too long, waited is a boundary that can be shared by a query that begins now.
func (b *Boundaries) Confirm(ctx context.Context, boundary IdleBoundary) (confirmed bool, waited time.Time, err error) {
	if boundary.fresh {
		counters, err := ReadInsertCounter(ctx, b.conn, boundary.of)
		return err == nil && counters.Records == boundary.last.counters.Records, waited, err
	}
	seen, err := b.look(ctx, boundary.of)
	if err == nil && !seen.oldest.After(boundary.AsOf) {
		if waited, err = AwaitInserts(ctx, b.conn, boundary.AsOf); err != nil || waited.Before(boundary.AsOf) {
			return false, waited, err
		}
		waited = time.Time{}
		seen, err = b.look(ctx, boundary.of)
	}
	return err == nil && seen.counters.Records == boundary.last.counters.Records, waited, err
}
