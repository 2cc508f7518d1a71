package snapshot

import (
	"cmp"
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A RollupState tells how far the rollup have come (schema/DESIGN.md).
type RollupState struct {
	Now    time.Time // the store's clock
	Number uint64    // of the last step that was done or held; 0 before the first
	// Until is the boundary: every record none of whose rows was stored after it is refreshed.
	Until time.Time
	Lease uint64 // number of the last lease; 0 for none
	// Leased says that the rollup are being changed otherwise and may not be read.
	Leased      bool
	LeaseHolder int64     // who holds them
	LeasedAt    time.Time // the holder's last sign of life
	// Refreshing says that a refresh batch was begun that is not done.
	Refreshing bool
	Done       uint64    // number of the last entry that moved the watermark
	Begun      uint64    // number of the last batch that was begun
	Refresher  int64     // who began it
	BegunAt    time.Time // and when
	// Damaged are the parts of the rollup that are not what their sources say.
	Damaged []Damage
	// LastDamage is the number of the newest entry of a damage, also of one that has been repaired; 0 for none.
	LastDamage uint64
}

// A Damage is an entry that keeps queries of an organization's records in a source away from the rollup, until it is
// taken out of the log.
type Damage struct {
	Organization schema.OrganizationID
	Source       string
	Number       uint64 // of the entry when it was written last
}

// Next is a number that is greater than all in the rollup log.
func (s RollupState) Next() uint64 { return max(s.Number, s.Begun) + 1 }

// ValidFor is how long what was read of a watermark holds at least: whoever holds the rollup waits twice as long
// before changing them, and rows are not refreshed sooner after they were stored.
const ValidFor = time.Second

// ClockMargin is by how much the store's clock may be set back unnoticed: what was stored since an instant is looked for from so much before it.
const ClockMargin = 2 * time.Second

// staleness is the age of a boundary at which so much may have been stored since that reading all records is
// quicker: nobody refreshes, or a lot is being copied.
const staleness = 5 * time.Minute

// Boundary is how far a query of an organization's records in a source may use the rollup; zero for not at all.
func (s RollupState) Boundary(organization schema.OrganizationID, source string) time.Time {
	if s.Damage(organization, source) != nil {
		return time.Time{}
	}
	return s.Watermark()
}

// Watermark is Boundary for whoever has no damage; zero where nobody may use the rollup.
func (s RollupState) Watermark() time.Time {
	if s.Leased || s.Number == 0 || s.Until.After(s.Now) || s.Now.Sub(s.Until) > staleness {
		return time.Time{}
	}
	return s.Until
}

// Damage returns the entry of an organization and a source, or nil.
func (s RollupState) Damage(organization schema.OrganizationID, source string) *Damage {
	for i, d := range s.Damaged {
		if d.Organization == organization && d.Source == source {
			return &s.Damaged[i]
		}
	}
	return nil
}

const ofOrganization = "organization_id = {organization:String}"

// readRollupState leaves it to mark to find the newest of the few rows: every function in the text costs ClickHouse more than they do.
const readRollupState = "SELECT now64(3, 'UTC'), kind, organization_id, source, tupleElement(latest, 1), tupleElement(latest, 2), tupleElement(latest, 3) FROM " + schema.TableRollupLog

// A mark is a row of the marks.
type mark struct {
	number uint64
	value  int64
	at     time.Time
}

// newer is the order of the column.
func (m mark) newer(than mark) bool {
	return cmp.Or(cmp.Compare(m.number, than.number), cmp.Compare(m.value, than.value), m.at.Compare(than.at)) > 0
}

// ReadRollupState reads how far the rollup have come.
func ReadRollupState(ctx context.Context, conn driver.Conn) (RollupState, error) {
	var s RollupState
	rows, err := conn.Query(oneThread(ctx), readRollupState)
	if err != nil {
		return s, failure.Of("read the watermark", err)
	}
	defer rows.Close()
	newest := map[string]mark{}
	for rows.Next() {
		var kind, organization, source string
		var m mark
		if err := rows.Scan(&s.Now, &kind, &organization, &source, &m.number, &m.value, &m.at); err != nil {
			return s, failure.Of("read the watermark", err)
		}
		if kind == "damage" && organization == "" {
			s.LastDamage = max(s.LastDamage, m.number)
			continue
		}
		if kind == "damage" {
			s.damaged(Damage{schema.OrganizationID(organization), source, m.number})
			continue
		}
		if m.newer(newest[kind]) {
			newest[kind] = m
		}
	}
	if err := rows.Err(); err != nil {
		return s, failure.Of("read the watermark", err)
	}
	if len(newest) == 0 {
		before, err := Now(ctx, conn)
		return RollupState{Now: before.AsOf}, err
	}
	commit, lease := newest["commit"], newest["lease"]
	s.Until = time.UnixMilli(-commit.value).UTC()
	s.Lease, s.LeaseHolder, s.LeasedAt = lease.number, lease.value, lease.at
	s.Number = max(commit.number, lease.number)
	s.Leased = lease.number > 0 && lease.number >= commit.number
	begun := newest["begin"]
	s.Done, s.Begun, s.Refresher, s.BegunAt = commit.number, begun.number, begun.value, begun.at
	s.Refreshing = s.Begun > s.Number
	return s, nil
}

// damaged adds an entry, or notes that it was written again.
func (s *RollupState) damaged(d Damage) {
	if before := s.Damage(d.Organization, d.Source); before != nil {
		before.Number = max(before.Number, d.Number)
		return
	}
	s.Damaged = append(s.Damaged, d)
}

// oneThread is a context for a query of so few rows that a second thread costs more than it helps.
func oneThread(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
}

// RollupRecords is how many records of an organization are refreshed, and whether there are conflicts between its
// attribution records (schema.TableConflicts).
func RollupRecords(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.RollupTable) (records uint64, conflicts bool, err error) {
	var sum int64
	err = conn.QueryRow(ctx, "SELECT toInt64(sum("+table.Records+")), ("+readConflicts+schema.ConflictAttribution+"') FROM "+table.Table+
		" WHERE "+ofOrganization, clickhouse.Named("organization", string(organization))).Scan(&sum, &conflicts)
	if err != nil {
		return 0, false, failure.Of("count records in the rollup", err)
	}
	return uint64(max(sum, 0)), conflicts, nil
}

// RunsMoved reports whether the created_at of any run of an organization has moved.
func RunsMoved(ctx context.Context, conn driver.Conn, organization schema.OrganizationID) (moved bool, err error) {
	err = conn.QueryRow(oneThread(ctx), readConflicts+schema.ConflictRun+"'", clickhouse.Named("organization", string(organization))).Scan(&moved)
	if err != nil {
		return false, failure.Of("look for runs that moved", err)
	}
	return moved, nil
}

// readConflicts asks for conflicts of an organization, of a kind whose name and a quotation mark follow.
const readConflicts = "SELECT count() > 0 FROM " + schema.TableConflicts + " WHERE " + ofOrganization + " AND kind = '"

// RefreshQueryPrefix begins the query_id of every insert into a rollup table. Such an insert stores nothing
// that an inclusion boundary would have to wait for.
const RefreshQueryPrefix = "runlens-refresh-"
