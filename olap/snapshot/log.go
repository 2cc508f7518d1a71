package snapshot

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// staleness is the age of a watermark at which so much may have been stored since that reading all records is quicker:
// no refresher runs, or a lot is being copied.
const staleness = 5 * time.Minute

// A Log is what the rollup log says (schema/DESIGN.md). The zero Log, but for Now, is that of a store without a
// refresh.
type Log struct {
	Now    time.Time // the store's clock
	Number uint64    // of the newest commit or lease; 0 before the first
	// Until is how far the rollup has come: it has every record none of whose rows was stored after it. Inclusive.
	Until       time.Time
	Lease       uint64 // number of the last lease, which programs of the first release take; 0 for none
	Leased      bool   // the lease is valid: the rollup is changed by its process and may not be read
	LeasedAt    time.Time
	Refreshing  bool      // a claim was begun that has not ended
	Committed   uint64    // number of the last commit
	CommittedAt time.Time // and when
	Begun       uint64    // number of the last claim that was begun
	Refresher   int64     // the random name of the process that began it; negative where it changes what was refreshed
	BegunAt     time.Time // and when, or when it gave its last sign of life
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
	Records
	Number uint64 // of the entry when it was written last
	// Announced says that a change made it on purpose, as a purge or a move does: nothing is wrong.
	Announced bool
}

// Next is a number that is greater than all in the log.
func (s Log) Next() uint64 { return max(s.Number, s.Begun) + 1 }

// Changing reports whether the claim is of a process that changes what was refreshed, as a purge does.
func (s Log) Changing() bool { return s.Refreshing && s.Refresher < 0 }

// Watermark is how far queries of an organization's records may use the rollup; zero for not at all.
func (s Log) Watermark(of Records) time.Time {
	if s.Damage(of) != nil {
		return time.Time{}
	}
	return s.StoreWatermark()
}

// StoreWatermark is the Watermark of records without damage; zero where the rollup may not be used.
func (s Log) StoreWatermark() time.Time {
	if s.Leased || s.Number == 0 || s.SetBack || s.Until.After(s.Now) || s.Now.Sub(s.Until) > staleness {
		return time.Time{}
	}
	return s.Until
}

// SameRollup reports whether the rollup was the same at two readings: no batch was begun or committed in between, no
// damage found, and no program of the first release took a lease. Rows are only changed after such an entry, and
// numbers in the log only grow.
func (s Log) SameRollup(other Log) bool {
	return s.Number == other.Number && s.Begun == other.Begun && s.Committed == other.Committed &&
		s.Lease == other.Lease && s.LastDamage == other.LastDamage
}

// Damage returns the entry of some records, or nil.
func (s Log) Damage(of Records) *Damage {
	for i, d := range s.Damaged {
		if d.Records == of {
			return &s.Damaged[i]
		}
	}
	return nil
}

// logRows are the newest rows of the log, by what they are of. It is left to Go to find them: every function in the
// text costs ClickHouse more than the few rows do.
type logRows map[logKey]storedRow

// A logKey is what entries are of, of which the newest counts: a kind, of damages of some organization its records too.
type logKey struct {
	kind    string
	records Records
}

func (l logRows) add(row storedRow) {
	of := logKey{row.Kind, Records{schema.OrganizationID(row.Organization), row.Source}}
	last := l[of]
	if cmp.Or(cmp.Compare(row.Number, last.Number), cmp.Compare(row.Value, last.Value), row.At.Compare(last.At)) > 0 {
		l[of] = row // the order of the column latest
	}
}

// log is what the rows say at an instant of the store's clock.
func (l logRows) log(now time.Time) Log {
	s := Log{Now: now.UTC()}
	if len(l) == 0 {
		return s
	}
	newest := func(kind string) storedRow { return l[logKey{kind: kind}] }
	committed, leased, begun := newest(schema.LogCommit), newest(schema.LogLease), newest(schema.LogBegin)
	s.Until = time.UnixMilli(-committed.Value).UTC()
	s.Lease, s.LeasedAt = leased.Number, leased.At
	s.Number = max(committed.Number, leased.Number)
	s.Leased = leased.Number > 0 && leased.Number >= committed.Number
	s.Committed, s.CommittedAt = committed.Number, committed.At
	s.Begun, s.Refresher, s.BegunAt = begun.Number, begun.Value, begun.At
	s.Refreshing = s.Begun > s.Number && s.Refresher != schema.LogNobody
	s.LastDamage = newest(schema.LogDamage).Number
	s.SetBack = s.CommittedAt.Sub(s.Now) >= Tolerance
	for of, row := range l {
		if of.kind == schema.LogDamage && of.records.Organization != "" {
			s.Damaged = append(s.Damaged, Damage{of.records, row.Number, row.Value == schema.LogAnnounced})
		}
	}
	slices.SortFunc(s.Damaged, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Source, b.Source))
	})
	return s
}

// ReadLog reads the rollup log alone.
func ReadLog(ctx context.Context, conn driver.Conn) (s Log, err error) {
	var rows []storedRow
	if err := conn.Select(oneThread(ctx), &rows, logEntries.String()); err != nil {
		return s, failure.Of("read the rollup log", err)
	}
	if len(rows) == 0 {
		s.Now, err = Now(ctx, conn)
		return s, err
	}
	log := logRows{}
	for _, row := range rows {
		log.add(row)
	}
	return log.log(rows[0].Now), nil
}

// Tolerance is how far the store's clock and that of a process may part between two readings without being taken for
// set back; less than ClockMargin.
const Tolerance = ClockMargin / 2

// drift is how fast the two clocks may part from each other, of a second.
const drift = time.Millisecond / 2

// A ClockWatch compares the store's clock, or that of a source, with the monotonic one of this process, and notices
// when the former is set back by the Tolerance or more.
type ClockWatch struct {
	origin time.Time // of this process; zero before the first reading
	// By how much the store's clock is ahead of the time since origin: at least, as was read at an instant, and at most,
	// as was read last.
	least, most time.Duration
	read        time.Time
}

// Observe notes what the store's clock was between two instants of this process. It returns by how much that may have
// been set back since the last reading, 0 for less than the Tolerance, and whether it certainly was since any reading,
// however long this process was paused between a query and its answer.
func (w *ClockWatch) Observe(before, store, after time.Time) (back time.Duration, certain bool) {
	first := w.origin.IsZero()
	if first {
		w.origin = before
	}
	ahead := store.Sub(w.origin)
	atLeast, atMost := ahead-after.Sub(w.origin), ahead-before.Sub(w.origin)
	if first {
		w.least, w.most, w.read = atLeast, atMost, after
		return 0, false
	}
	if back = w.most - atLeast; back < Tolerance {
		back = 0
	}
	expected := w.least - time.Duration(after.Sub(w.read).Seconds()*float64(drift))
	certain = expected-atMost >= Tolerance
	if certain || atLeast > expected {
		w.least, w.read = atLeast, after
	}
	w.most = atMost
	return back, certain
}

// A setBackLog keeps the rollup out of use since the store's clock was seen to be set back, until a refresher has
// committed a watermark of after the first reading of the log from then on.
type setBackLog struct {
	unread bool   // it was set back since the log was read last
	commit uint64 // that was the last one when it was found to be set back; 0 once there is a later one
}

// observe says in the log whether the store's clock was set back.
func (l *setBackLog) observe(log *Log) {
	if l.unread {
		l.unread, l.commit = false, log.Committed
	}
	if log.Committed > l.commit {
		l.commit = 0
	}
	log.SetBack = log.SetBack || l.commit > 0
}
