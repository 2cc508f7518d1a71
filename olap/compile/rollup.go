package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// SharedKeysMessage is in the exception of a statement of the rollup that finds that an initiator key which the
// answer may depend on represents two texts, or none.
const SharedKeysMessage = "initiator keys are shared"

// rollupQuery aggregates the signed rows of the rollup and of the delta.
func (w *printer) rollupQuery() sql.Select {
	keys := w.keys()
	selected := slices.Clone(keys)
	var from fmt.Stringer = w.signed()
	switch {
	case w.byPerson():
		from = w.withTexts(from)
		selected = append(selected, w.personNames()...)
	case w.byInitiator():
		from = w.perInitiatorKey(from)
	}
	for _, m := range w.Aggregates {
		sum := "sum(s_" + m.RollupSum + ")"
		if m.CountsInitiators {
			// Those of whom records are left. Without an identifier there is nobody.
			sum = "countIf(s_" + w.Rollup.Records + " > 0 AND (f_initiator != 0 OR f_initiator_high != 0))"
			switch {
			case w.byPerson():
				sum = "count(f_user_identifier) > 0" // a group is one person
			case w.PackedDays:
				sum = fmt.Sprintf("countIf(s_%s > 0 AND %s >= %d)", w.Rollup.Records, initiatorDay, 1<<dayBits)
			}
		}
		selected = append(selected, sum+" AS m_"+m.Name)
	}
	s := sql.Select{Columns: selected, From: sql.Query(from).As("r"), Group: keys}
	if w.Assumes&plan.KeysDistinct != 0 {
		s.Where = []string{w.noSharedKey()}
		if w.PackedDays {
			s.Where = append(s.Where, w.fitsPacked())
		}
	}
	if len(keys) > 0 {
		// A group whose records have all changed into others is none.
		s.Having = "sum(s_" + w.Rollup.Records + ") > 0"
	}
	return s
}

// byPerson reports whether the rollup's rows are grouped by initiator keys that become people.
func (w *printer) byPerson() bool {
	return w.fromRollup() && slices.ContainsFunc(w.Query.Dimensions,
		func(d *catalog.Dimension) bool { return plan.RollupKey(d) == plan.KeyInitiator })
}

// byInitiator reports whether initiator keys are counted or filtered by otherwise.
func (w *printer) byInitiator() bool { return w.UsesInitiatorKeys() && !w.byPerson() }

// unchanged is the condition that the rollup log is as it was when the watermark was read.
func (w *printer) unchanged() string {
	begin := ""
	if w.Assumes&plan.DeltaHolds != 0 {
		begin = number(int64(w.Begun))
	}
	return schema.RollupUnchanged(number(int64(w.Lease)), number(int64(w.Damage)), begin)
}

// signedKeys are what signed rows are grouped by: an initiator key where the answer has an identifier.
func (w *printer) signedKeys() (keys []string) {
	if w.PackedDays {
		return []string{initiatorDay}
	}
	for _, d := range w.Query.Dimensions {
		if plan.RollupKey(d) == plan.KeyInitiator {
			keys = append(keys, "f_"+plan.KeyInitiator)
		} else {
			keys = append(keys, keyOf(d))
		}
	}
	if w.byInitiator() {
		keys = slices.Concat(initiatorKeys, keys)
	}
	return keys
}

// summed are the sums that are needed.
func (w *printer) summed() []string {
	names := []string{w.Rollup.Records}
	for _, m := range w.Aggregates {
		if m.RollupSum != "" && !slices.Contains(names, m.RollupSum) {
			names = append(names, m.RollupSum)
		}
	}
	return names
}

// signed are the signed rows of the rollup and of the delta.
func (w *printer) signed() (parts sql.Union) {
	if w.Projection == nil {
		parts = append(parts, w.rollupRows())
	} else {
		parts = append(parts, w.rollupAggregates())
		if edges := w.rangeEdges(); edges != "" {
			parts = append(parts, w.rollupRows(edges))
		}
	}
	switch w.Delta {
	case plan.DeltaInline:
		parts = append(parts, w.inlineDelta())
	case plan.DeltaCached:
		parts = append(parts, w.cachedDelta())
	}
	return parts
}

// rollupAggregates are the sums that the projection has for every span of time.
func (w *printer) rollupAggregates() sql.Select {
	times, clock := w.inSpans(w.Projection.Time, w.Projection.SpanMillis)
	s := w.signedRows(sql.Table(w.Rollup.Table), times, clock, ofRollup,
		func(name string) string { return "sum(" + name + ")" })
	s.Group = w.signedKeys()
	return s
}

// spans are the numbers of the first span of time that lies in the range as a whole, and of the one after the last.
func (w *printer) spans(span int64) (first, after int64) {
	r := w.Query.Range
	return -schema.SpanOf(-r.StartUTC.UnixMilli(), span), schema.SpanOf(r.EndUTC.UnixMilli(), span)
}

// inSpans are the conditions that a row's span of time, which column numbers, lies in the range as a whole, and the
// span's first instant in milliseconds.
func (w *printer) inSpans(column string, span int64) (conditions []string, clock string) {
	first, after := w.spans(span)
	return []string{
		column + " >= " + number(first),
		column + " < " + number(after),
	}, fmt.Sprintf("%s * %d", column, span)
}

// rangeEdges is the condition that a row of the range lies in none of the spans that lie in it as a whole; empty where
// no row can.
func (w *printer) rangeEdges() string {
	span := w.Projection.SpanMillis
	first, after := w.spans(span)
	start, last := time.UnixMilli(first*span).UTC(), time.UnixMilli(after*span-1).UTC()
	if from, to := w.ends(); start.Equal(from) && last.Equal(to) {
		return ""
	}
	return "(" + w.Source.ClockColumn + " < " + instant(clamp(start)) +
		" OR " + w.Source.ClockColumn + " > " + instant(clamp(last)) + ")"
}

// rollupRows are the rows of the rollup in the range that satisfy further conditions.
func (w *printer) rollupRows(further ...string) sql.Select {
	conditions, clock := append(w.inTimes(), further...), w.clockMillis()
	if w.RowsByQuarter && len(further) == 0 {
		// To decode the clock of all rows takes several times as long as their quarters. It still finds the granules.
		conditions = []string{"indexHint(" + strings.Join(w.inTimes(), " AND ") + ")"}
		var quarters []string
		quarters, clock = w.inSpans(schema.ColumnQuarter, schema.QuarterMillis)
		conditions = append(conditions, quarters...)
	}
	if w.AfterAsOf {
		conditions = append(conditions, "first_stored_at <= "+instant(w.AsOf))
	}
	return w.signedRows(sql.Table(w.Rollup.Table), conditions, clock, ofRollup,
		func(name string) string { return name })
}

// ofRollup is the SQL of a key over a row of the rollup.
func ofRollup(k schema.RollupKey) string { return k.Name }

// stored are the conditions that a row of the source in the range was stored after the watermark, and counts.
func (w *printer) stored() []string {
	return append(slices.Concat(w.inTimes(), w.counted()), w.Rollup.StoredAfter(instant(w.Watermark)))
}

// cachedDelta are the rows of the delta that are sent with the statement.
func (w *printer) cachedDelta() sql.Select {
	w.deltaColumns = slices.Concat(w.deltaColumns, w.RollupKeys, w.summed())
	if w.Day {
		w.deltaColumns = append(w.deltaColumns, w.Rollup.Clock)
	}
	return w.signedRows(sql.Sent(schema.TableDelta), []string{schema.ColumnAsked}, w.clockMillis(), ofRollup,
		func(name string) string { return name })
}

// DeltaRow reports whether the statement of an input needs a row of a cached delta, as its SQL does where the delta is
// inline: a row in the range that was first stored at or before asOf, or that takes away what else would count. Times
// are Unix milliseconds.
func (in Input) DeltaRow(clock, firstStoredAt int64, takesAway bool) bool {
	start, last := in.ends()
	if clock < start.UnixMilli() || clock > last.UnixMilli() {
		return false
	}
	return firstStoredAt <= in.AsOf.UnixMilli() || takesAway && !in.AfterAsOf
}

// inlineDelta takes away what the rollup has of the records that were stored after the watermark, and adds what they
// are now. Whichever of them a refresher writes meanwhile, the sum of both is the same.
func (w *printer) inlineDelta() sql.Select {
	n := schema.SumColumns
	for _, name := range w.RollupKeys {
		n = max(n, w.Rollup.Key(name).Columns)
	}
	known := "first_stored_at <= " + instant(w.AsOf)
	if !w.AfterAsOf {
		known = "(sign = -1 OR " + known + ")" // all of the rollup is in the sum
	}
	delta := w.Rollup.InlineDelta(schema.Reading{Read: sql.Table, Known: w.inTimes(), Stored: w.stored()}, n)
	return w.signedRows(sql.Query(delta), []string{known}, w.clockMillis(),
		func(k schema.RollupKey) string { return k.SQL }, func(name string) string { return w.Rollup.Sums[name] })
}

// signedRows selects from the rollup or the delta what is grouped by, and what is summed as s_<name>.
func (w *printer) signedRows(
	from sql.From, conditions []string, clock string, key func(schema.RollupKey) string, sum func(string) string,
) sql.Select {
	var aliases []string
	for _, name := range w.RollupKeys {
		aliases = append(aliases, key(*w.Rollup.Key(name))+" AS f_"+name)
	}
	if w.byInitiator() && !w.PackedDays {
		aliases = append(aliases,
			fmt.Sprintf("toUInt64(bitShiftRight(f_initiator_key, %d)) AS %s", schema.InitiatorKeyShift, initiatorKeys[0]),
			fmt.Sprintf("toUInt16(bitShiftRight(f_initiator_key, %d)) AS %s", schema.InitiatorKeyShift+64, initiatorKeys[1]))
	}
	if w.Day {
		aliases = append(aliases, "toInt32("+w.localDay(clock)+") AS f_day")
	}
	if w.PackedDays {
		aliases = append(aliases, w.packed())
	}
	selected := w.signedKeys()
	for _, name := range w.summed() {
		selected = append(selected, sum(name)+" AS s_"+name)
	}
	return sql.Select{With: aliases, Columns: selected, From: from, Where: append(conditions, w.kept()...)}
}
