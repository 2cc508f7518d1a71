package snapshot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
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
	clock    setBacks
	log      setBackLog
	last     atomic.Pointer[Snapshot] // the newest one with the inserts in flight
	overview overviews
	active   *cache.Cache[struct{}] // organizations of which rows arrived a short time ago

	mu     sync.Mutex
	next   *taking // the one that callers may join; nil for none
	taking bool

	idleFrom time.Duration // ClockMargin but for tests
}

// NewView returns a View that knows nothing yet.
func NewView(conn driver.Conn) *View {
	v := &View{conn: conn}
	v.overview.maxAge = overviewAge
	v.SetIdleFrom(ClockMargin)
	return v
}

// SetIdleFrom changes how long before a reading the last row of an organization was stored that is idle. By so much may
// the store's clock be set back in between.
func (v *View) SetIdleFrom(d time.Duration) {
	v.idleFrom = d
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

// takePatience bounds a snapshot, whoever waits for it.
const takePatience = 10 * time.Second

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
		ctx, cancel := context.WithTimeout(t.ctx, takePatience)
		t.taken, t.err = v.take(ctx, t.parts, t.organizations)
		cancel()
		close(t.done)
	}
}

// take reads a snapshot. The order matters: an insert that is not in flight any more when those are read was counted
// before, so that each insert is seen in one of them at least.
func (v *View) take(
	ctx context.Context, parts Parts, organizations []schema.OrganizationID,
) (s Snapshot, err error) {
	asked := time.Now()
	s.margin = v.idleFrom
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
	setBacks := v.clock.observe(asked, s.Now, s.at)
	if parts&RollupLog != 0 {
		v.log.observe(setBacks, &s.Log)
	}
	if parts&InFlight != 0 {
		v.keep(s)
	}
	for _, organization := range organizations {
		if s.Idle(organization) < v.idleFrom {
			v.isActive(organization)
		}
	}
	return s, nil
}

// keep makes it the last snapshot of the whole store.
func (v *View) keep(s Snapshot) {
	s.of = nil
	v.last.Store(&s)
}
