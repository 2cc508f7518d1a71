package moment

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A Standing tells whether anything happened to the records of an organization in a source, or to what is settled.
type Standing struct {
	Now     time.Time // the store's clock; whatever was acknowledged before is counted
	Records Count     // no insert into the source ended while it is the same
	Marks   Count     // nobody began to settle, or to change what is settled, while it is the same
}

// A Count is of rows that were ever stored. An insert counts before it ends.
type Count struct {
	rows   uint64
	latest int64 // when the last of them were stored, in Unix milliseconds
}

// Quiet is for how long nothing has been stored of the organization's records.
func (s Standing) Quiet() time.Duration { return s.Now.Sub(time.UnixMilli(s.Records.latest)) }

// ReadStanding reads the standing of an organization.
func ReadStanding(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.SettledTable) (s Standing, err error) {
	const ofMarks = "source = '" + schema.TableSettlements + "'"
	var now int64
	err = conn.QueryRow(ctx, "SELECT toUnixTimestamp64Milli(now64(3)), sumIf(rows, NOT marks), toUnixTimestamp64Milli(maxIf(last_stored_at, NOT marks))"+
		", sumIf(rows, marks), toUnixTimestamp64Milli(maxIf(last_stored_at, marks))"+
		" FROM (SELECT rows, last_stored_at, "+ofMarks+" AS marks FROM "+schema.TableStoredCounts+
		" WHERE source = {source:String} AND "+ofOrganization+" OR "+ofMarks+")",
		clickhouse.Named("source", table.Source), clickhouse.Named("organization", string(organization))).
		Scan(&now, &s.Records.rows, &s.Records.latest, &s.Marks.rows, &s.Marks.latest)
	if err != nil {
		return s, failure.Of("read the standing", err)
	}
	s.Now = time.UnixMilli(now).UTC()
	return s, nil
}
