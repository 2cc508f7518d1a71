package snapshot

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/schema"
)

const (
	// tick is a millisecond, the unit of stamps, and a little for a clock that is being slowed down.
	tick = time.Millisecond + 10*time.Microsecond
	// freshFor is how old the boundary of a snapshot may be: requests in such quick succession share one.
	freshFor = 50 * time.Millisecond
	// safety is by how much a boundary lies before the store's clock as the last snapshot gives it. The one that confirms
	// it is taken in parallel with the query, and finds it in the past already.
	safety = 2 * time.Millisecond
)

// Await is an inclusion boundary that several pages can share (contract 4.1). It has everything that was acknowledged
// before the call: a millisecond passes before the clock is read, so those stamps are earlier.
//
// It waits two seconds at most for inserts that began at or before the boundary. If one takes longer, the boundary is
// the millisecond before it began: then rows that other inserts stored since are left out too, and asOf says so.
//
// Where the clock was set back behind the newest stamp of the organization's records, the boundary is that stamp. Until
// the clock has passed it again, rows that are stored later have earlier stamps, so that later pages may have them.
func (v *View) Await(ctx context.Context, organization schema.OrganizationID) (asOf time.Time, err error) {
	if err := Pause(ctx, tick); err != nil {
		return asOf, err
	}
	s, err := v.Take(ctx, InFlight, organization)
	if err != nil {
		return asOf, err
	}
	asOf = s.Now.Add(-time.Millisecond)
	if !s.Oldest.After(asOf) {
		if err := Pause(ctx, insertPoll); err != nil {
			return asOf, err
		}
		if asOf, err = AwaitInserts(ctx, v.conn, asOf); err != nil {
			return asOf, err
		}
	}
	if clock := s.Clock(organization); clock.After(s.Now) {
		asOf = clock
	}
	return asOf, nil
}

// A Derived is a boundary that pages can share once it is confirmed. The zero value is never confirmed.
type Derived struct {
	AsOf  time.Time
	last  *Snapshot // of before the query
	fresh bool      // it is the snapshot's own boundary
}

// At is the boundary of the same query at an instant that its statement read from the store's clock.
func (d Derived) At(asOf time.Time) Derived { return Derived{asOf, d.last, false} }

// Derive returns a boundary for a query that begins now. Where no snapshot was taken yet, or rows of the organization
// arrived a short time ago, ok is false.
func (v *View) Derive(organization schema.OrganizationID) (d Derived, ok bool) {
	last := v.last.Load()
	if last == nil {
		return d, false
	}
	if _, active := v.active.Get(string(organization), cache.KeyOf([]byte(organization))); active {
		return d, false
	}
	now := last.clock()
	if now.Sub(last.Boundary()) < freshFor {
		return Derived{last.Boundary(), last, true}, true
	}
	return Derived{now.Add(-safety).Truncate(time.Millisecond), last, false}, true
}

// Confirm reports whether pages can share a boundary. It may run before, beside or after the query, in any order. Every
// row of the organization with a stamp at or before the boundary was visible to the snapshot that it was derived from,
// which is older than the query:
//
//  1. The organization is the same in a later snapshot (Snapshot.Same): no insert that was in flight then, or began
//     later, has ended.
//  2. Nor does one end later, if no insert in flight began at or before the boundary. Such inserts, of whatever
//     organization, are waited for before the counts are read. If one takes too long, waited is a boundary that can be
//     shared by a query that begins now. The snapshot's own boundary lies before all of them anyway.
//  3. The store's clock was not set back: by the Tolerance, or at all for the snapshot's own boundary, since nobody
//     waits until the clock has passed that again. What is stored from then on may be stamped before the boundary.
func (v *View) Confirm(
	ctx context.Context, d Derived, organization schema.OrganizationID,
) (confirmed bool, waited time.Time, err error) {
	if d.last == nil {
		return false, waited, nil
	}
	parts, tolerated := InFlight, Tolerance
	if d.fresh {
		parts, tolerated = 0, safety // one clock may run a little slower than the other
	}
	expected := d.last.clock()
	later, err := v.Take(ctx, parts, organization)
	if err != nil || expected.Sub(later.Now) > tolerated || d.AsOf.Sub(later.Now) > Tolerance {
		return false, waited, err
	}
	if !d.fresh && !later.Oldest.After(d.AsOf) {
		if waited, err = AwaitInserts(ctx, v.conn, d.AsOf); err != nil || waited.Before(d.AsOf) {
			return false, waited, err
		}
		if later, err = v.Take(ctx, 0, organization); err != nil {
			return false, time.Time{}, err
		}
	}
	if !d.last.Same(later, Records{Organization: organization}) {
		v.isActive(organization)
		return false, time.Time{}, nil
	}
	return true, time.Time{}, nil
}
