package rollup

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A Size is how many records of an organization the rollup has.
type Size struct {
	Records   uint64
	Conflicts bool // attribution records were stored with several contents or under several clocks (schema.TableConflicts)
}

// ReadSize reads the size of an organization's records.
func ReadSize(ctx context.Context, conn driver.Conn, of snapshot.Records) (size Size, err error) {
	table := schema.RollupOf(of.Source)
	var sum int64
	err = conn.QueryRow(ctx, "SELECT toInt64(sum("+table.Records+")),"+
		" ("+readConflicts+schema.ConflictAttribution+"') FROM "+table.Table+" WHERE "+schema.OfOrganization,
		clickhouse.Named("organization", string(of.Organization))).Scan(&sum, &size.Conflicts)
	if err != nil {
		return Size{}, failure.Of("count the records of the rollup", err)
	}
	size.Records = uint64(max(sum, 0))
	return size, nil
}

// RunsMoved reports whether the created_at of any run of an organization has moved.
func RunsMoved(ctx context.Context, conn driver.Conn, organization schema.OrganizationID) (moved bool, err error) {
	err = conn.QueryRow(snapshot.OneThread(ctx), readConflicts+schema.ConflictRun+"'",
		clickhouse.Named("organization", string(organization))).Scan(&moved)
	if err != nil {
		return false, failure.Of("read runs that moved", err)
	}
	return moved, nil
}

// readConflicts selects the conflicts of an organization, of a kind whose name and a quotation mark follow.
const readConflicts = "SELECT count() > 0 FROM " + schema.TableConflicts + " WHERE " + schema.OfOrganization +
	" AND kind = '"
