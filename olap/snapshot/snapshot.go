package snapshot

import (
	"time"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/elapsed"
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

// A Snapshot is what was read of the store at a moment (View.Take): first the inserts in flight, then the counts and
// the rollup log. Whatever rests on the store's rows keeps the snapshot of before it read them, and is right as long as
// a later one is the Same.
type Snapshot struct {
	// Now is the store's clock when the first of it was read: whatever was acknowledged before has an earlier or the same
	// stamp, unless the clock was set back (Clock), is counted, and is visible to statements from then on.
	Now time.Time
	// Oldest is when the oldest insert of records in flight began, rather a little earlier than later; Now where there is
	// none. Zero but for Parts with InFlight.
	Oldest time.Time
	Log    Log // zero but for Parts with RollupLog

	// margin is by how much the clock may have been set back unnoticed, and how long before a reading the last row of an
	// organization was stored that is idle: ClockMargin but for tests.
	margin   time.Duration
	of       map[schema.OrganizationID]counts // of the organizations that it was taken for
	altering count                            // entries that let somebody change rows, of whatever organization
	log      count                            // entries of the rollup log
	failed   failures
	started  time.Time // when ClickHouse was started
	at       time.Time // by this server's clock, when the first of it had been read
}

// Same reports whether nothing changed of some records between two snapshots, or of all that an organization has where
// no source is given: nothing was stored, renamed, purged, found to be in conflict or repaired. What a refresh of the
// rollup changes is not asked (SameRollup).
//
//  1. Where the earlier one has the organization's counts, they are the same. Views count each insert before it is
//     acknowledged (schema.CountingViews), and counts only grow. Whoever changes rows in another way writes entries to
//     the rollup log before and after it, which are counted.
//  2. Else it has the inserts in flight. All counts of the later one are of before the oldest of those began, and by
//     the margin earlier, since the clock may have been set back meanwhile. An insert that was in flight, or that began
//     later, counts with a later instant. So none of them is of this organization, or has ended.
//  3. An insert that fails may have stored rows and is not counted. The number of those is the same.
//  4. Counts are not synced to the disk: ClickHouse was not started in between, since a loss of power takes them back.
func (s Snapshot) Same(later Snapshot, of Records) bool {
	if !elapsed.SameStart(s.started, later.started) || !s.failed.same(later.failed) {
		return false
	}
	counts := later.of[of.Organization].only(of.Source)
	if before, counted := s.of[of.Organization]; counted {
		return before.only(of.Source) == counts && s.altering == later.altering
	}
	return !s.Oldest.IsZero() && counts.storedUntil(s.SeenUntil())
}

// SameRollup reports whether it is the Same and the rollup was not refreshed either.
func (s Snapshot) SameRollup(later Snapshot, of Records) bool {
	return s.log == later.log && s.Same(later, of)
}

// boundary is an instant until which everything stored was visible when the inserts in flight were read, and is all
// there will be.
func (s Snapshot) boundary() time.Time {
	return s.Oldest.Add(-time.Millisecond).Truncate(time.Millisecond)
}

// SeenUntil is such an instant also where the clock is set back by less than the margin meanwhile.
func (s Snapshot) SeenUntil() time.Time { return s.boundary().Add(-s.margin) }

// clock is the store's clock now, as the snapshot and this server's clock give it, rather a little earlier than later.
func (s Snapshot) clock() time.Time { return s.Now.Add(time.Since(s.at)) }

// Clock is Now, or when the newest record of an organization was stored if the clock was set back since: records that
// were acknowledged before have no later stamps.
func (s Snapshot) Clock(organization schema.OrganizationID) time.Time {
	if newest := time.UnixMilli(s.of[organization].newest()).UTC(); newest.After(s.Now) {
		return newest
	}
	return s.Now
}

// Arriving reports whether rows of an organization are arriving: the last ones were stored less than the margin ago.
func (s Snapshot) Arriving(organization schema.OrganizationID) bool {
	return s.Now.Sub(time.UnixMilli(s.of[organization].newest())) < s.margin
}

// StoredUntil reports whether all records of an organization were stored until an instant, inclusive. Others are
// stamped by a clock that is ahead: an answer may have them later, although nothing is stored.
func (s Snapshot) StoredUntil(at time.Time, organization schema.OrganizationID) bool {
	return s.of[organization].storedUntil(at)
}

// Conflicts reports whether records of an organization were ever stored with several contents or under several clocks.
func (s Snapshot) Conflicts(organization schema.OrganizationID) bool {
	return s.of[organization].conflicts.rows > 0
}

// Altered reports whether anybody began or ended to change rows between two snapshots, of whatever organization.
func (s Snapshot) Altered(later Snapshot) bool { return s.altering != later.altering }

// For is the snapshot without the counts of other organizations than one, to be kept.
func (s Snapshot) For(organization schema.OrganizationID) Snapshot {
	own, counted := s.of[organization]
	if s.of = nil; counted {
		s.of = map[schema.OrganizationID]counts{organization: own}
	}
	return s
}

// counts are an organization's rows in insert_counters.
type counts struct {
	runs, attributions, agents, conflicts count
}

// A count is of rows that were ever inserted. An insert counts before it is acknowledged.
type count struct {
	rows   uint64
	latest int64 // when the last of them were stored, in Unix milliseconds
}

func (c *count) add(rows uint64, latest time.Time) {
	c.rows, c.latest = c.rows+rows, max(c.latest, latest.UnixMilli())
}

// newest is when the newest record was stored, in Unix milliseconds; 0 for none.
func (c counts) newest() int64 { return max(c.runs.latest, c.attributions.latest) }

func (c counts) storedUntil(at time.Time) bool { return c.newest() <= at.UnixMilli() }

// only are those of a source; all of them where it is empty.
func (c counts) only(source string) (of counts) {
	if source == "" {
		return c
	}
	*of.of(source) = *c.of(source)
	return of
}

// of is the count of a source; nil for none.
func (c *counts) of(source string) *count {
	switch source {
	case schema.TableRuns:
		return &c.runs
	case schema.TableAttributions:
		return &c.attributions
	case schema.TableAgents:
		return &c.agents
	case schema.TableConflicts:
		return &c.conflicts
	}
	return nil
}

// failures are how many inserts failed since ClickHouse was started, of whatever table. One that fails, as on a full
// disk, may have stored rows of some months that are visible from then on and are not counted. Nobody is told of them,
// so that whatever rests on counts rests on this number too (schema/decisions/failed-inserts.md).
type failures struct {
	n       uint64
	unknown bool // the user may not read it
}

// same reports whether no insert failed between two readings.
func (f failures) same(other failures) bool { return f == other && !f.unknown }
