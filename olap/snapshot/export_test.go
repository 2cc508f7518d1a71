package snapshot

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/parts"
	"github.com/runlens/runlens/schema"
)

// MaxActive is of how many organizations it is known at most that rows arrive.
const MaxActive = maxActive

// ReadActive reads of which organizations rows were stored within a while, of at most so many.
func ReadActive(ctx context.Context, conn driver.Conn, within time.Duration, most int) ([]schema.OrganizationID,
	error) {
	read, err := readOverview(ctx, conn, parts.Changes{All: true}, within, most)
	return slices.Collect(maps.Keys(read.active)), err
}

// Slept is as if the machine had slept since the last overview.
func (v *View) Slept(d time.Duration) { v.overview.at = olaptest.Slept(v.overview.at, -d) }

// SetPatience changes how long a reading may take.
func (v *View) SetPatience(d time.Duration) { v.patience = d }

// SetBack makes the last snapshot one of before the store's clock was set back.
func (v *View) SetBack(by time.Duration) {
	before := *v.last.Load()
	before.Now, before.Oldest = before.Now.Add(by), before.Oldest.Add(by)
	v.last.Store(&before)
}

// Waiting is how many organizations the next snapshot is wanted for.
func (v *View) Waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next == nil {
		return 0
	}
	return len(v.next.organizations)
}

// Fresh says that it is the snapshot's own boundary.
func (d Derived) Fresh() bool { return d.fresh }
