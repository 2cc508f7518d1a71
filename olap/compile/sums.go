package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// addUp chooses to add up records in the rollup instead of reading those that they are made of, where that gives the
// same answer: all metrics are sums that the rollup table keeps, or counts of its initiator_keys, and it has all that is grouped
// and filtered by. Where some projection has all of it, and everything refreshed was stored before the inclusion boundary, that
// one is added up in the spans of time that lie in the range as a whole.
func (p *planned) addUp() {
	table := schema.RollupOf(p.source.Table)
	if table == nil || p.Watermark.IsZero() || len(p.aggregates) == 0 {
		return
	}
	var keys []string
	need := func(name string) bool {
		if !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
		return table.Key(name) != nil
	}
	for _, m := range p.aggregates {
		if m.RollupSum == "" && !(m.CountsInitiators && need(keyInitiatorKey)) {
			return
		}
	}
	for _, d := range p.Query.Dimensions {
		if d.Kind != catalog.Day && !need(rollupKey(d)) {
			return
		}
	}
	for _, f := range p.Query.Filters {
		if f.Dimension.Kind != catalog.Day && !need(rollupKey(f.Dimension)) {
			return
		}
	}
	p.rollup, p.rollupKeys = table, keys
	if p.rollupAfterAsOf = !p.AsOf.IsZero() && p.AsOf.Before(p.Watermark); p.rollupAfterAsOf {
		return
	}
	for i, r := range table.Projections {
		has := func(key string) bool { return slices.Contains(r.Keys, key) }
		if !slices.ContainsFunc(keys, func(key string) bool { return !has(key) }) && p.hasSpans(r.SpanMillis) {
			p.projection = &table.Projections[i]
			return
		}
	}
}

// rollupKey is the key that stands for a dimension.
func rollupKey(d *catalog.Dimension) string {
	if d.Kind == catalog.Identifier {
		return keyInitiatorKey
	}
	return d.Field
}

// hasSpans reports whether the range consists of whole spans of time. Of a long range in which days are not told apart, it is enough if some
// spans lie in it: to read what lies beside them takes some milliseconds.
func (p *planned) hasSpans(span int64) bool {
	return p.consistsOf(span) || !p.needDay && p.long()
}

// consistsOf reports whether the range consists of whole spans of time, of which each lies in one local day if days are told apart.
func (p *planned) consistsOf(span int64) bool {
	on := func(t time.Time) bool { return t.UnixMilli()%span == 0 }
	r := p.Query.Range
	if p.needDay {
		for i, o := range r.Offsets {
			if o.Millis%span != 0 || i < len(r.Offsets)-1 && !on(o.UntilUTC) {
				return false
			}
		}
		if millisPerDay%span != 0 {
			return false
		}
	}
	return on(r.StartUTC) && on(r.EndUTC)
}

// spans are the numbers of the first span of time that lies in the range as a whole, and of the one behind the last.
func (p *planned) spans(span int64) (first, behind int64) {
	r := p.Query.Range
	return -schema.SpanOf(-r.StartUTC.UnixMilli(), span), schema.SpanOf(r.EndUTC.UnixMilli(), span)
}

// sums adds up the records in the rollup and what changed since.
func (w *printer) sums() string {
	keys := w.keys()
	selected := slices.Clone(keys)
	from := w.signed()
	switch {
	case w.byInitiatorKey():
		from = w.named(from)
		selected = append(selected, w.names()...)
	case w.byInitiator():
		from = w.perInitiatorKey(from)
	}
	for _, m := range w.aggregates {
		sum := "sum(s_" + m.RollupSum + ")"
		if m.CountsInitiators {
			// Those of whom records are left. Without an identifier there is nobody.
			sum = "countIf(s_" + w.rollup.Records + " > 0 AND (f_initiator != 0 OR f_initiator_high != 0))"
			if w.byInitiatorKey() {
				sum = "count(f_user_identifier) > 0" // a group is one person
			}
		}
		selected = append(selected, sum+" AS m_"+m.Name)
	}
	sql := "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM\n(\n" + indent(from) + "\n) AS r"
	if w.Changes == DeltaInline && slices.Contains(w.rollupKeys, keyInitiatorKey) {
		sql += "\nWHERE " + w.noSharedKey()
	}
	if len(keys) > 0 {
		// A group whose records have all changed into others is none.
		sql += "\nGROUP BY " + strings.Join(keys, ", ") + "\nHAVING sum(s_" + w.rollup.Records + ") > 0"
	}
	return sql
}

// signedKeys are what signed rows are grouped by: a initiator_key where the answer has an identifier.
func (w *printer) signedKeys() (keys []string) {
	for _, d := range w.Query.Dimensions {
		if rollupKey(d) == keyInitiatorKey {
			keys = append(keys, "f_"+keyInitiatorKey)
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
	names := []string{w.rollup.Records}
	for _, m := range w.aggregates {
		if m.RollupSum != "" && !slices.Contains(names, m.RollupSum) {
			names = append(names, m.RollupSum)
		}
	}
	return names
}

// signed are rows that add up: those of the rollup table, and those of what changed since.
func (w *printer) signed() string {
	var parts []string
	if w.projection == nil {
		parts = append(parts, w.rollupRows())
	} else {
		parts = append(parts, w.rollupAggregates())
		if beside := w.besideSpans(); beside != "" {
			parts = append(parts, w.rollupRows(beside))
		}
	}
	if w.Changes != DeltaNone {
		parts = append(parts, w.changedRows())
	}
	return strings.Join(parts, "\nUNION ALL\n")
}

// rollupAggregates are the sums of what is refreshed, which a projection has for every span of time.
func (w *printer) rollupAggregates() string {
	times, clock := w.inSpans(w.projection.Time, "span", w.projection.SpanMillis)
	sql := w.signedRows(w.rollup.Table, append([]string{ofOrganization}, times...), clock, ofRollup, func(name string) string { return "sum(" + name + ")" })
	if keys := w.signedKeys(); len(keys) > 0 {
		sql += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	return sql
}

// inSpans are the conditions that a row's span of time, which column numbers, lies in the range as a whole, and the span's first instant in milliseconds.
// name tells the parameters of several spans apart.
func (w *printer) inSpans(column, name string, span int64) (conditions []string, clock string) {
	first, behind := w.spans(span)
	return []string{
		column + " >= " + w.param("first_"+name, first),
		column + " < " + w.param("behind_"+name, behind),
	}, fmt.Sprintf("%s * %d", column, span)
}

// besideSpans is the condition that a row of the range lies in none of the spans that lie in it as a whole; empty where no row can.
func (w *printer) besideSpans() string {
	span := w.projection.SpanMillis
	first, behind := w.spans(span)
	start, last := time.UnixMilli(first*span).UTC(), time.UnixMilli(behind*span-1).UTC()
	if from, to := w.ends(); start.Equal(from) && last.Equal(to) {
		return ""
	}
	return "(" + w.source.ClockColumn + " < " + w.instant("spans_start_ms", clamp(start)) +
		" OR " + w.source.ClockColumn + " > " + w.instant("spans_last_ms", clamp(last)) + ")"
}

// rollupRows are the rollup rows of the range that satisfy further conditions.
func (w *printer) rollupRows(further ...string) string {
	conditions, clock := append(w.inRange(), further...), w.clockMillis()
	if len(further) == 0 && w.consistsOf(schema.QuarterMillis) {
		// To decode the clock of all rows takes several times as long as their quarters of an hour. It still finds the granules.
		conditions = []string{ofOrganization, "indexHint(" + strings.Join(w.inTimes(), " AND ") + ")"}
		var quarters []string
		quarters, clock = w.inSpans(schema.ColumnQuarter, "quarter", schema.QuarterMillis)
		conditions = append(conditions, quarters...)
	}
	if w.rollupAfterAsOf {
		conditions = append(conditions, "first_stored_at <= "+w.boundary())
	}
	return w.signedRows(w.rollup.Table, conditions, clock, ofRollup, func(name string) string { return name })
}

// ofRollup is the SQL of a key over a rollup row.
func ofRollup(k schema.RollupKey) string { return k.Name }

// stored is the condition that a row of the source was stored since, in the range.
func (w *printer) stored() string {
	return strings.Join(w.inRange(), " AND ") + " AND " + w.rollup.StoredAt + " > " + w.instant("watermark_ms", w.Watermark)
}

// changedRows take away what is refreshed of the records that changed since, and add what they are now. They do so
// for every record of which a row was stored since: whichever of them a refresher refreshes meanwhile,
// the sum of both is the same.
func (w *printer) changedRows() string {
	if w.Changes == DeltaCached {
		w.changeColumns = slices.Concat(w.changeColumns, w.rollupKeys, w.summed())
		if w.needDay {
			w.changeColumns = append(w.changeColumns, w.rollup.Clock)
		}
		return w.signedRows(schema.TableDelta, []string{schema.ColumnAsked}, w.clockMillis(), ofRollup, func(name string) string { return name })
	}
	n := w.rollup.SumColumns
	for _, name := range w.rollupKeys {
		n = max(n, w.rollup.Key(name).Columns)
	}
	inTime := "first_stored_at <= " + w.boundary()
	if !w.rollupAfterAsOf {
		inTime = "(sign = -1 OR " + inTime + ")" // all that is refreshed is in the sum
	}
	from := "(\n" + indent(w.rollup.SignedChanges(strings.Join(w.inRange(), " AND "), w.stored(), n)) + "\n)"
	return w.signedRows(from, []string{inTime}, w.clockMillis(),
		func(k schema.RollupKey) string { return k.SQL }, func(name string) string { return w.rollup.Sums[name] })
}

// AsksFor reports whether the statement of an input with given changes asks for one, as its SQL does where it looks for them: a change of a
// record in the range that was first stored at or before asOf, or that takes away what else would be in the sum. Times are Unix milliseconds.
func (in Input) AsksFor(clock, storedFirst int64, takesAway bool) bool {
	start, last := in.ends()
	if clock < start.UnixMilli() || clock > last.UnixMilli() {
		return false
	}
	return storedFirst <= in.AsOf.UnixMilli() || takesAway && !in.AsOf.Before(in.Watermark)
}

// signedRows selects from refreshed or changed rows what is grouped by, and what is added up as s_<name>.
func (w *printer) signedRows(from string, conditions []string, clock string, key func(schema.RollupKey) string, sum func(string) string) string {
	var aliases []string
	for _, name := range w.rollupKeys {
		aliases = append(aliases, key(*w.rollup.Key(name))+" AS f_"+name)
	}
	if w.byInitiator() {
		aliases = append(aliases,
			fmt.Sprintf("toUInt64(bitShiftRight(f_initiator_key, %d)) AS %s", schema.InitiatorKeyShift, initiatorKeys[0]),
			fmt.Sprintf("toUInt16(bitShiftRight(f_initiator_key, %d)) AS %s", schema.InitiatorKeyShift+64, initiatorKeys[1]))
	}
	if w.needDay {
		aliases = append(aliases, "toInt32("+w.localDay(clock)+") AS f_day")
	}
	selected := w.signedKeys()
	for _, name := range w.summed() {
		selected = append(selected, sum(name)+" AS s_"+name)
	}
	sql := ""
	if len(aliases) > 0 {
		sql = "WITH\n    " + strings.Join(aliases, ",\n    ") + "\n"
	}
	sql += "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM " + from
	if conditions = append(conditions, w.kept()...); len(conditions) > 0 {
		sql += "\nWHERE " + strings.Join(conditions, "\n    AND ")
	}
	return sql
}
