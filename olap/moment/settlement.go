package moment

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A Settlement tells how far the settled tables have come (schema/DESIGN.md).
type Settlement struct {
	Now    time.Time // the store's clock
	Number uint64    // of the last step that was done or held; 0 before the first
	// Until is the boundary: every record none of whose rows was stored after it is settled.
	Until time.Time
	Hold  uint64 // number of the last hold; 0 for none
	// Held says that the settled tables are being changed otherwise and may not be read.
	Held   bool
	Holder int64     // who holds them
	HeldAt time.Time // the holder's last sign of life
	// Settling says that a step was begun that is not done.
	Settling bool
}

// SettledFor is how long what was read of a settlement holds at least: whoever holds the settled tables waits twice as long
// before changing them, and rows are not settled sooner after they were stored.
const SettledFor = time.Second

// staleness is the age of a boundary at which so much may have been stored since that reading all records is
// quicker: nobody settles, or a lot is being copied.
const staleness = 5 * time.Minute

// Boundary is how far a query may use the settled tables; zero for not at all.
func (s Settlement) Boundary() time.Time {
	if s.Held || s.Number == 0 || s.Until.After(s.Now) || s.Now.Sub(s.Until) > staleness {
		return time.Time{}
	}
	return s.Until
}

const ofOrganization = "organization_id = {organization:String}"

const readSettlement = "SELECT toUnixTimestamp64Milli(now64(3)), done.1, done.2, hold.1, hold.2, toUnixTimestamp64Milli(hold.3), intent.1" +
	" FROM (SELECT maxIf(latest, kind = 'done') AS done, maxIf(latest, kind = 'hold') AS hold, maxIf(latest, kind = 'intent') AS intent" +
	" FROM " + schema.TableSettlements + ")"

// ReadSettlement reads how far the settled tables have come.
func ReadSettlement(ctx context.Context, conn driver.Conn) (Settlement, error) {
	var s Settlement
	var done, intent uint64
	var now, earliness, heldAt int64
	if err := conn.QueryRow(ctx, readSettlement).Scan(&now, &done, &earliness, &s.Hold, &s.Holder, &heldAt, &intent); err != nil {
		return s, failure.Of("read the settlement", err)
	}
	s.Now, s.Until, s.HeldAt = time.UnixMilli(now).UTC(), time.UnixMilli(-earliness).UTC(), time.UnixMilli(heldAt).UTC()
	s.Number = max(done, s.Hold)
	s.Held = s.Hold > 0 && s.Hold >= done
	s.Settling = intent > s.Number
	return s, nil
}

// SettledRecords is how many records of an organization are settled.
func SettledRecords(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.SettledTable) (uint64, error) {
	var records int64
	err := conn.QueryRow(ctx, "SELECT toInt64(sum("+table.Records+")) FROM "+table.Table+" WHERE "+ofOrganization,
		clickhouse.Named("organization", string(organization))).Scan(&records)
	if err != nil {
		return 0, failure.Of("count settled records", err)
	}
	return uint64(max(records, 0)), nil
}

// SettleQueryPrefix begins the query_id of every insert into a settled table. Such an insert stores nothing
// that an inclusion boundary would have to wait for.
const SettleQueryPrefix = "runlens-settle-"
