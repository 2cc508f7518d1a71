package snapshot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// Parts are what a snapshot has beside the counts. They are bits, each for a statement or a half of one.
type Parts uint8

const (
	InFlight  Parts = 1 << iota // the oldest insert in flight
	RollupLog                   // what the rollup log says
)

// A View is how a server sees a store: it takes snapshots, shares them among all who wait, and knows of every
// organization what the last overview said. It is safe for concurrent use.
type View struct {
	conn     driver.Conn
	patience time.Duration // of a reading; failure.Silence but for tests
	clock    ClockWatch    // as log, of the snapshot that is being taken
	log      setBackLog
	last     atomic.Pointer[Snapshot] // the newest one with the inserts in flight
	overview overviews
	active   *cache.Cache[struct{}] // organizations of which rows arrived a short time ago

	mu     sync.Mutex
	next   *taking // the one that callers may join; nil for none
	taking bool

	margin time.Duration // of snapshots
}

// NewView returns a View that knows nothing yet.
func NewView(conn driver.Conn) *View {
	v := &View{conn: conn, patience: failure.Silence}
	v.overview.maxAge = OverviewAge
	v.SetMargin(ClockMargin)
	return v
}

// SetMargin changes the margin of snapshots, for tests.
func (v *View) SetMargin(d time.Duration) {
	v.margin = d
	v.active = cache.New[struct{}](maxActiveBytes, activeFor(d))
}

// SetOverviewAge changes how long an overview is believed, for tests. Call it before the first query.
func (v *View) SetOverviewAge(d time.Duration) { v.overview.maxAge = d }

// A taking is a snapshot that several callers wait for.
type taking struct {
	ctx           context.Context // of the caller who came first, without its end
	parts         Parts
	organizations []schema.OrganizationID
	done          chan struct{}
	taken         Snapshot
	err           error
}

// Take returns a snapshot with the counts of some organizations, all of which was read after the call. Who calls while
// one is being taken shares the next one.
func (v *View) Take(ctx context.Context, parts Parts, organizations ...schema.OrganizationID) (Snapshot, error) {
	v.mu.Lock()
	if v.next == nil {
		v.next = &taking{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	}
	joined := v.next
	joined.parts |= parts
	joined.organizations = append(joined.organizations, organizations...)
	if !v.taking {
		v.taking = true
		go v.takeAll()
	}
	v.mu.Unlock()
	select {
	case <-joined.done:
		return joined.taken, joined.err
	case <-ctx.Done():
		return Snapshot{}, context.Cause(ctx)
	}
}

// takeAll takes snapshots as long as somebody waits for one.
func (v *View) takeAll() {
	for {
		v.mu.Lock()
		t := v.next
		v.next, v.taking = nil, t != nil
		v.mu.Unlock()
		if t == nil {
			return
		}
		t.err = failure.Within(t.ctx, v.patience, func(ctx context.Context) (err error) {
			t.taken, err = v.take(ctx, t.parts, t.organizations)
			return err
		})
		close(t.done)
	}
}

// take reads a snapshot. The order matters: an insert that is not in flight any more when those are read was counted
// before, so that each insert is seen in one of them at least.
func (v *View) take(
	ctx context.Context, parts Parts, organizations []schema.OrganizationID,
) (s Snapshot, err error) {
	asked := time.Now()
	s.margin = v.margin
	if parts&InFlight != 0 {
		inserts, err := ReadInserts(ctx, v.conn)
		if err != nil {
			return s, err
		}
		s.Now, s.Oldest, s.at = inserts.Now, inserts.Oldest, time.Now()
	}
	if err := s.readStored(ctx, v.conn, parts&RollupLog != 0, organizations); err != nil {
		return s, err
	}
	if parts&InFlight == 0 {
		s.at = time.Now()
	}
	if _, certain := v.clock.Observe(asked, s.Now, s.at); certain {
		v.log.unread = true
	}
	if parts&RollupLog != 0 {
		v.log.observe(&s.Log)
	}
	if parts&InFlight != 0 {
		last := s.For("") // without the counts of any
		v.last.Store(&last)
	}
	for _, organization := range organizations {
		if s.Arriving(organization) {
			v.isActive(organization)
		}
	}
	return s, nil
}

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
	newest, setBack := s.Clock(organization), false
	if newest.After(s.Now) { // stored since the clock was read, if that has passed the stamp by now
		now, err := Now(ctx, v.conn)
		if err != nil {
			return asOf, err
		}
		if setBack = now.Before(newest); !setBack {
			asOf = newest
		}
	}
	if !s.Oldest.After(asOf) {
		if err := Pause(ctx, insertPoll); err != nil {
			return asOf, err
		}
		if asOf, err = v.awaitInserts(ctx, asOf); err != nil {
			return asOf, err
		}
	}
	if setBack {
		asOf = newest
	}
	return asOf, nil
}

// awaitInserts is AwaitInserts with snapshots that all who wait share: there is one reading at a time.
func (v *View) awaitInserts(ctx context.Context, at time.Time) (time.Time, error) {
	return awaitInserts(ctx, at, func() (time.Time, error) {
		s, err := v.Take(ctx, InFlight)
		return s.Oldest, err
	})
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
	if now.Sub(last.boundary()) < freshFor {
		return Derived{last.boundary(), last, true}, true
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
	// The boundary may be of this very millisecond. To wait for its end takes less than to find out that it has not ended.
	if wait := d.AsOf.Add(tick).Sub(d.last.clock()); wait > 0 && !d.fresh {
		if err := Pause(ctx, min(wait, tick)); err != nil {
			return false, waited, err
		}
	}
	expected := d.last.clock()
	later, err := v.Take(ctx, parts, organization)
	if err != nil || expected.Sub(later.Now) > tolerated || d.AsOf.Sub(later.Now) > Tolerance {
		return false, waited, err
	}
	if !d.fresh && !later.Oldest.After(d.AsOf) {
		if waited, err = v.awaitInserts(ctx, d.AsOf); err != nil || waited.Before(d.AsOf) {
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
