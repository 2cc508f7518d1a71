package snapshot

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
)

const (
	// maxActive is of how many organizations and sources it is read that rows arrive, and maxActiveBytes what is cached
	// of them.
	maxActive      = 10_000
	maxActiveBytes = 16 << 20
	// idleFrom is how long before a reading the last row of an organization was stored that is idle. The store's clock
	// may be set back by so much in between.
	idleFrom = ClockMargin
	// freshFor is how old the boundary of a reading may be: requests in such quick succession share one.
	freshFor = 50 * time.Millisecond
	// safety is by how much a boundary lies before the store's clock as the last reading gives it. The reading that
	// confirms it runs in parallel with the query, and finds it in the past already.
	safety = 2 * time.Millisecond
)

// Boundaries sets inclusion boundaries of first pages, without waiting where nothing was stored of an organization
// recently. Waiting for one takes a third of the time of a small query (schema/decisions/as-of.md).
type Boundaries struct {
	conn     driver.Conn
	last     atomic.Pointer[reading]
	active   *cache.Cache[struct{}] // records of which rows arrived a short time ago
	idleFrom time.Duration
}

// NewBoundaries returns Boundaries without any reading.
func NewBoundaries(conn driver.Conn) *Boundaries {
	b := &Boundaries{conn: conn}
	b.SetIdleFrom(idleFrom)
	return b
}

// SetIdleFrom changes when an organization is idle, for tests. Call it before the first query.
func (b *Boundaries) SetIdleFrom(d time.Duration) {
	b.idleFrom = d
	b.active = cache.New[struct{}](maxActiveBytes, activeFor(d))
}

// activeFor is for how long more rows of an organization are expected after the last ones.
func activeFor(idleFrom time.Duration) time.Duration { return 5 * idleFrom }

// A reading is what was being stored at an instant, of whatever organization. What was stamped before the oldest insert
// in flight began is visible to it, or never appears.
type reading struct {
	Inserts
	at     time.Time // by this server's clock, when they had been read
	failed failures  // read after them
}

// now is the store's clock, rather a little earlier than later.
func (r *reading) now() time.Time { return r.Now.Add(time.Since(r.at)) }

// boundary is an instant until which everything stored was visible to the reading, and is all there will be.
func (r *reading) boundary() time.Time {
	return r.Oldest.Add(-time.Millisecond).Truncate(time.Millisecond)
}

// An IdleBoundary is a boundary that pages can share once it is confirmed. The zero value is never confirmed.
type IdleBoundary struct {
	AsOf  time.Time
	of    Records
	last  *reading // from before the query
	fresh bool     // it is the reading's own boundary
}

// At is the boundary of the same query at an instant that its statement read from the store's clock.
func (i IdleBoundary) At(asOf time.Time) IdleBoundary {
	i.AsOf, i.fresh = asOf, false
	return i
}

// Idle returns a boundary for a query that begins now. Where nothing was read yet, or rows of the records arrived a
// short time ago, ok is false.
func (b *Boundaries) Idle(of Records) (boundary IdleBoundary, ok bool) {
	last := b.last.Load()
	if last == nil {
		return IdleBoundary{}, false
	}
	if _, active := b.active.Get(of.Place()); active {
		return IdleBoundary{}, false
	}
	now := last.now()
	if now.Sub(last.boundary()) < freshFor {
		return IdleBoundary{last.boundary(), of, last, true}, true
	}
	return IdleBoundary{now.Add(-safety).Truncate(time.Millisecond), of, last, false}, true
}

// Read reads what is being stored and of which organizations rows arrive. It is called again and again, so that the
// first query of an organization need not wait for a boundary.
func (b *Boundaries) Read(ctx context.Context) error {
	seen, err := b.inFlight(ctx)
	if err == nil {
		seen.failed, err = failedInserts(ctx, b.conn)
	}
	if err != nil {
		return err
	}
	b.last.Store(seen)
	active, err := readActive(ctx, b.conn, activeFor(b.idleFrom), maxActive)
	for _, of := range active {
		b.isActive(of)
	}
	return err
}

func (b *Boundaries) isActive(of Records) {
	owner, key := of.Place()
	b.active.Put(owner, key, struct{}{}, 0)
}

// inFlight begins a reading, which is complete with what failed.
func (b *Boundaries) inFlight(ctx context.Context) (*reading, error) {
	inserts, err := InFlight(ctx, b.conn)
	return &reading{Inserts: inserts, at: time.Now()}, err
}

// Confirm reports whether pages can share a boundary. It may run before, beside or after the query, in any order. Every
// row of the organization with a stamp at or before the boundary was visible to the reading that Idle used, which is
// older than the query:
//
//  1. An insert that was in flight then, or began later, counts with an instant after the reading's own boundary. If
//     all of the organization's records were counted before that, none of those inserts has ended (StoredUntil).
//     Nor has one of them failed, which is not counted, if none has: the numbers of inserts that failed say so. They
//     are read after the inserts in flight, and again with the counters.
//  2. Nor does one end later, if no insert in flight began at or before the boundary. Such inserts, of whatever
//     organization, are waited for before the counters are read. If one takes too long, waited is a boundary that can
//     be shared by a query that begins now. The reading's own boundary lies before all of them anyway.
//  3. Where the store's clock was set back since the reading, what was stored since seems older. By idleFrom it may:
//     organizations that stored anything so shortly before the reading are not idle. If it was set back by half of
//     that, nothing is confirmed; nor is the reading's own boundary if it was set back at all, since nobody waits until
//     the clock has passed it again.
func (b *Boundaries) Confirm(
	ctx context.Context, boundary IdleBoundary,
) (confirmed bool, waited time.Time, err error) {
	if boundary.last == nil {
		return false, waited, nil
	}
	var seen *reading
	if !boundary.fresh {
		if seen, err = b.inFlight(ctx); err != nil {
			return false, waited, err
		}
		if boundary.AsOf.Sub(seen.Now) > idleFrom/2 {
			return false, waited, nil // set back: nobody waits until the clock has passed the boundary again
		}
		if !seen.Oldest.After(boundary.AsOf) {
			if waited, err = AwaitInserts(ctx, b.conn, boundary.AsOf); err != nil || waited.Before(boundary.AsOf) {
				return false, waited, err
			}
		}
	}
	now := boundary.last.now()
	counters, err := ReadInsertCounter(ctx, b.conn, boundary.of)
	if err != nil {
		return false, time.Time{}, err
	}
	if seen != nil {
		seen.failed = counters.failed
		b.last.Store(seen)
	}
	if !counters.failed.same(boundary.last.failed) {
		return false, time.Time{}, nil
	}
	if !counters.StoredUntil(boundary.last.boundary().Add(-b.idleFrom)) {
		b.isActive(boundary.of)
		return false, time.Time{}, nil
	}
	tolerated := idleFrom / 2
	if boundary.fresh {
		tolerated = safety // one clock may run a little slower than the other
	}
	setBack := !counters.Now.IsZero() && now.Sub(counters.Now) > tolerated
	return !setBack, time.Time{}, nil
}
