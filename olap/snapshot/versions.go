package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A Version says what the store has of an organization. While it is the same, every query of the organization has the
// same answer: nothing was stored, renamed, purged, found to be in conflict or repaired.
//
// It rests on the views that count inserts (schema.CountingViews), each of which counts before the insert is
// acknowledged, on the number of inserts that failed, and on leases, which whoever changes rows in another way has
// (package rollup).
type Version struct {
	runs, attributions, agents, conflicts Count
	repairs                               Count // of the organization's rollup, which answers may have used
	leases                                Count // of all organizations
	log                                   Count // likewise: every entry of the rollup log
	started                               time.Time
	failed                                failures
}

// Same reports whether nothing changed between two versions, of which the rollup may have been refreshed.
func (v Version) Same(other Version) bool {
	other.log = v.log
	return v.SameRollup(other)
}

// SameRollup reports whether nothing changed, and the rollup was not refreshed either.
func (v Version) SameRollup(other Version) bool {
	same := sameStart(v.started, other.started) && v.failed.same(other.failed)
	v.started = other.started
	return same && v == other
}

// StoredUntil reports whether all of the organization's rows were stored until an instant, inclusive. Others are
// stamped by a clock that is ahead: an answer may have them later, although nothing is stored.
func (v Version) StoredUntil(at time.Time) bool {
	return max(v.runs.latest, v.attributions.latest) <= at.UnixMilli()
}

// Conflicts reports whether records were ever stored with several contents or under several clocks.
func (v Version) Conflicts() bool { return v.conflicts.rows > 0 }

// Leases is how many entries of leases were ever written, of whatever organization.
func (v Version) Leases() Count { return v.leases }

// Versions are those of some organizations at an instant.
type Versions struct {
	Now time.Time // the store's clock: what was acknowledged before is counted. Zero where nothing was ever counted
	Of  map[schema.OrganizationID]Version
}

// ReadVersions reads the versions of some organizations.
func ReadVersions(
	ctx context.Context, conn driver.Conn, organizations []schema.OrganizationID,
) (v Versions, err error) {
	names := []string{""}
	for _, organization := range organizations {
		names = append(names, string(organization))
	}
	rows, failed, err := readCounts(ctx, conn, "organization_id IN {organizations:Array(String)}",
		clickhouse.Named("organizations", names))
	if err != nil {
		return v, err
	}
	read := map[schema.OrganizationID]Version{}
	var started time.Time
	for _, row := range rows {
		v.Now, started = row.Now, row.started()
		version := read[schema.OrganizationID(row.Organization)]
		if count := version.count(row.Source); count != nil {
			count.add(row)
		}
		read[schema.OrganizationID(row.Organization)] = version
	}
	v.Of = make(map[schema.OrganizationID]Version, len(organizations))
	for _, organization := range organizations {
		version := read[organization]
		version.leases, version.log, version.started = read[""].repairs, read[""].log, started
		version.failed = failed
		v.Of[organization] = version
	}
	return v, nil
}

// count is what a row of a source counts in; nil for none.
func (v *Version) count(source string) *Count {
	switch source {
	case schema.TableRuns:
		return &v.runs
	case schema.TableAttributions:
		return &v.attributions
	case schema.TableAgents:
		return &v.agents
	case schema.TableConflicts:
		return &v.conflicts
	case schema.SourceAlterations:
		return &v.repairs
	case schema.TableRollupLog:
		return &v.log
	}
	return nil
}

// Counted reports whether all inserts are counted: whether the store has every view that counts them.
func Counted(ctx context.Context, conn driver.Conn) (counted bool, err error) {
	err = conn.QueryRow(ctx, "SELECT uniqExact(name) = {views:UInt64} FROM system.tables"+
		" WHERE database = currentDatabase() AND engine = 'MaterializedView' AND name IN {names:Array(String)}",
		clickhouse.Named("views", uint64(len(schema.CountingViews))), clickhouse.Named("names", schema.CountingViews)).
		Scan(&counted)
	if err != nil {
		return false, failure.Of("look for the views that count inserts", err)
	}
	return counted, nil
}
