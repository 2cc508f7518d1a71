package rollup

import (
	"cmp"
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// staleness is the age of a watermark at which so much may have been stored since that reading all records is quicker:
// no refresher runs, or a lot is being copied.
const staleness = 5 * time.Minute

// A State is what the rollup log says (schema/DESIGN.md). The zero State, but for Now, is that of a store without a
// refresh.
type State struct {
	Now    time.Time // the store's clock
	Number uint64    // of the newest commit or lease; 0 before the first
	// Until is how far the rollup has come: it has every record none of whose rows was stored after it. Inclusive.
	Until       time.Time
	Lease       uint64 // number of the last lease; 0 for none
	Leased      bool   // the lease is valid: the rollup is changed by its process and may not be read
	LeaseHolder int64  // the random name of the process that has it
	LeasedAt    time.Time
	Refreshing  bool      // a batch was begun that is not committed
	Committed   uint64    // number of the last commit
	CommittedAt time.Time // and when
	Begun       uint64    // number of the last batch that was begun
	Refresher   int64     // the random name of the process that began it
	BegunAt     time.Time // and when
	Damaged     []Damage  // the parts of the rollup that are not what their sources say
	// LastDamage is the number of the newest entry of a damage, also of one that has been repaired; 0 for none.
	LastDamage uint64
	// SetBack says that the store's clock was set back since the last commit: rows may have been stored since that
	// seem older than the watermark. The next commit is of a refresher that knows it, and moves the watermark back.
	SetBack bool
}

// A Damage is an entry that keeps queries of an organization's records away from the rollup, until it is taken out of
// the log.
type Damage struct {
	snapshot.Records
	Number uint64 // of the entry when it was written last
}

// Next is a number that is greater than all in the log.
func (s State) Next() uint64 { return max(s.Number, s.Begun) + 1 }

// Watermark is how far queries of an organization's records may use the rollup; zero for not at all.
func (s State) Watermark(of snapshot.Records) time.Time {
	if s.damage(of) != nil {
		return time.Time{}
	}
	return s.StoreWatermark()
}

// StoreWatermark is the Watermark of records without damage; zero where the rollup may not be used.
func (s State) StoreWatermark() time.Time {
	if s.Leased || s.Number == 0 || s.SetBack || s.Until.After(s.Now) || s.Now.Sub(s.Until) > staleness {
		return time.Time{}
	}
	return s.Until
}

// SameRollup reports whether the rollup was the same at two readings: no batch was begun or committed in between, no
// lease taken and no damage found. Rows are only changed after such an entry, and numbers in the log only grow.
func (s State) SameRollup(other State) bool {
	return s.Number == other.Number && s.Begun == other.Begun && s.Committed == other.Committed &&
		s.Lease == other.Lease && s.LastDamage == other.LastDamage
}

// damage returns the entry of some records, or nil.
func (s State) damage(of snapshot.Records) *Damage {
	for i, d := range s.Damaged {
		if d.Records == of {
			return &s.Damaged[i]
		}
	}
	return nil
}

// readState leaves it to Go to find the newest of the few rows: every function in the text costs ClickHouse more.
const readState = "SELECT now64(3, 'UTC'), kind, organization_id, source, tupleElement(latest, 'number')," +
	" tupleElement(latest, 'value'), tupleElement(latest, 'recorded_at') FROM " + schema.TableRollupLog

// A logEntry is a row of the log.
type logEntry struct {
	number uint64
	value  int64
	at     time.Time
}

// newer is the order of the column latest.
func (e logEntry) newer(than logEntry) bool {
	return cmp.Or(cmp.Compare(e.number, than.number), cmp.Compare(e.value, than.value), e.at.Compare(than.at)) > 0
}

// ReadState reads the rollup log.
func ReadState(ctx context.Context, conn driver.Conn) (s State, err error) {
	rows, err := conn.Query(snapshot.OneThread(ctx), readState)
	if err != nil {
		return s, failure.Of("read the rollup log", err)
	}
	defer rows.Close()
	newest := map[kind]logEntry{}
	for rows.Next() {
		var of kind
		var organization, source string
		var e logEntry
		if err := rows.Scan(&s.Now, (*string)(&of), &organization, &source, &e.number, &e.value, &e.at); err != nil {
			return s, failure.Of("read the rollup log", err)
		}
		switch {
		case of == damage && organization != "":
			s.damaged(Damage{snapshot.Records{Organization: schema.OrganizationID(organization), Source: source}, e.number})
		case e.newer(newest[of]):
			newest[of] = e
		}
	}
	if err := rows.Err(); err != nil {
		return s, failure.Of("read the rollup log", err)
	}
	if len(newest) == 0 {
		s.Now, err = snapshot.Now(ctx, conn)
		return s, err
	}
	committed, leased, begun := newest[commit], newest[lease], newest[begin]
	s.Until = time.UnixMilli(-committed.value).UTC()
	s.Lease, s.LeaseHolder, s.LeasedAt = leased.number, leased.value, leased.at
	s.Number = max(committed.number, leased.number)
	s.Leased = leased.number > 0 && leased.number >= committed.number
	s.Committed, s.CommittedAt = committed.number, committed.at
	s.Begun, s.Refresher, s.BegunAt = begun.number, begun.value, begun.at
	s.Refreshing = s.Begun > s.Number
	s.LastDamage = newest[damage].number
	s.SetBack = s.CommittedAt.Sub(s.Now) >= tolerance
	return s, nil
}

// damaged adds an entry, or notes that it was written again.
func (s *State) damaged(d Damage) {
	if before := s.damage(d.Records); before != nil {
		before.Number = max(before.Number, d.Number)
		return
	}
	s.Damaged = append(s.Damaged, d)
}
