package compile

import (
	"fmt"
	"math"
	"slices"

	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// The identifier's part of an initiator key as keys: three narrow ones, the day among them, share 16 bytes, for which
// ClickHouse groups twice as fast as for more.
var initiatorKeys = []string{"f_initiator", "f_initiator_high"}

// A person and a local day as one key (plan.PackedDays): the first 55 bits of the identifier's number, and 9 bits of a
// day, counted from some days before the range. Where a clock is set back over midnight, a range has instants of other
// days than its own.
const (
	initiatorDay = "f_initiator_day"
	dayBits      = 9
	daysBefore   = 64
)

const _ = uint(1<<dayBits - daterange.MaxDays - 2*daysBefore) // all days have their bits

// packedDayZero is the day that has no bits in initiatorDay, counted from FirstDay.
func (w *printer) packedDayZero() int64 { return int64(w.Query.Range.Start) - FirstDay - daysBefore }

// packed is initiatorDay over a row.
func (w *printer) packed() string {
	return fmt.Sprintf("bitOr(bitAnd(toUInt64(bitShiftRight(f_initiator_key, 64)), %d), toUInt64(f_day - %d)) AS %s",
		uint64(math.MaxUint64&^(1<<dayBits-1)), w.packedDayZero(), initiatorDay)
}

// unpackedDay is the local day over a group by initiatorDay.
func (w *printer) unpackedDay() string {
	return fmt.Sprintf("toInt32(bitAnd(%s, %d) + %d) AS f_day", initiatorDay, 1<<dayBits-1, w.packedDayZero())
}

// fitsPacked is the condition that the bits of an identifier that initiatorDay has are of one identifier, and of none
// 0; else the statement fails with SharedKeysMessage.
func (w *printer) fitsPacked() string {
	bits := fmt.Sprintf("bitShiftRight(f_initiator_key, %d)", 64+dayBits)
	all := fmt.Sprintf("bitShiftRight(f_initiator_key, %d)", schema.InitiatorKeyShift)
	return w.throwsShared(sql.Select{
		Columns: []string{fmt.Sprintf("uniqExact(%s) < uniqExact(%s) OR countIf(%s = 0) > 0", bits, all, bits)},
		From:    w.texts(),
	})
}

// throwsShared makes a statement fail with SharedKeysMessage if a query has the row 1. The set of an IN is read in the
// statement's snapshot, a scalar subquery is not.
func (w *printer) throwsShared(query fmt.Stringer) string {
	return throwsSharedIf("1 IN" + sql.In(query))
}

// throwsSharedIf makes a statement fail with SharedKeysMessage if a row has a condition.
func throwsSharedIf(condition string) string {
	return "NOT throwIf(" + condition + ", '" + SharedKeysMessage + "')"
}

// perInitiatorKey aggregates by initiator key, or by the identifier's part of it, in addition to the dimensions.
func (w *printer) perInitiatorKey(from fmt.Stringer) sql.Select {
	keys := w.signedKeys()
	selected := slices.Clone(keys)
	if w.PackedDays {
		selected = append(selected, w.unpackedDay())
	}
	for _, name := range w.summed() {
		selected = append(selected, "sum(s_"+name+") AS s_"+name)
	}
	return sql.Select{Columns: selected, From: sql.Query(from).As("r"), Group: keys}
}

// texts are the initiator keys of the organization with the identifiers and names that they represent. Those of the
// rollup's rows are stored before the rows are; the other ones come with an inline delta.
func (w *printer) texts() sql.From {
	texts := func(from sql.From) sql.Select {
		return sql.Select{From: from, Columns: []string{"initiator_key AS f_initiator_key",
			"CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier", "initiator_name AS f_user_name"}}
	}
	known := sql.Union{texts(sql.Table(schema.TableInitiatorKeys))}
	for _, stored := range w.textsStored() {
		known = append(known, texts(stored))
	}
	return w.name("texts", known)
}

// textsStored are the initiator keys with their texts of an inline delta, if there is one.
func (w *printer) textsStored() []sql.From {
	if w.Delta != plan.DeltaInline {
		return nil
	}
	return []sql.From{w.name("texts_stored", schema.InitiatorKeys(sql.Table, w.stored()...))}
}

// withTexts are sums by initiator key with the texts that the keys represent. A statement that finds a key without a
// text, as after a loss on the disk, fails with SharedKeysMessage: people must not fall into the group without an
// identifier.
func (w *printer) withTexts(from fmt.Stringer) sql.Select {
	s := sql.Select{
		Columns: []string{"*"}, From: sql.Query(w.perInitiatorKey(from)).As("r"),
		Joins: []sql.Join{{Kind: "ANY LEFT", From: w.texts().As("t"), On: "USING (f_initiator_key)"}},
		Where: []string{throwsSharedIf("f_initiator_key != 0 AND isNull(f_user_identifier)")},
	}
	if w.After != nil {
		s.Where = append(s.Where, w.afterCursor())
	}
	return s
}

// noSharedKey is the condition that every initiator key represents one text; else the statement fails with
// SharedKeysMessage. Texts that are written while the statement runs are among those of the delta.
func (w *printer) noSharedKey() string {
	return w.throwsShared(schema.AnySharedKey(w.textsStored()...))
}

// personNames are the companions of the groups of people.
func (w *printer) personNames() (selected []string) {
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// As in groups; a name counts if records with it are left.
				selected = append(selected, fmt.Sprintf("if(isNull(%s), NULL, maxIf(f_%s, s_%s > 0)) AS n_%s",
					keyOf(d), c.Field, w.Rollup.Records, c.Name))
			}
		}
	}
	return selected
}
