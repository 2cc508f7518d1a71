package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// addUp chooses to add up the settled table of the model instead of reading rows, where that gives the
// same answer: all metrics are sums that it keeps, some projection has all that is grouped and filtered by,
// days begin and end where its spans of time do, and everything settled was stored before the inclusion boundary.
func (p *planned) addUp() {
	table := schema.SettledOf(p.source.Table)
	if table == nil || p.SettledUntil.IsZero() || !p.AsOf.IsZero() && p.AsOf.Before(p.SettledUntil) || len(p.aggregates) == 0 {
		return
	}
	for _, m := range p.aggregates {
		if m.Settled == "" {
			return
		}
	}
	var keys []string
	need := func(d *catalog.Dimension) {
		if d.Kind != catalog.Day && !slices.Contains(keys, d.Field) {
			keys = append(keys, d.Field)
		}
	}
	for _, d := range p.Query.Dimensions {
		need(d)
	}
	for _, f := range p.Query.Filters {
		need(f.Dimension)
	}
	for i, r := range table.Rollups {
		has := func(key string) bool { return slices.Contains(r.Keys, key) }
		if !slices.ContainsFunc(keys, func(key string) bool { return !has(key) }) && p.onSpans(r.SpanMillis) {
			p.settled, p.rollup = table, &table.Rollups[i]
			return
		}
	}
}

// onSpans reports whether no span of time lies in two local days, or both in and out of the range.
func (p *planned) onSpans(span int64) bool {
	on := func(t time.Time) bool { return t.UnixMilli()%span == 0 }
	r := p.Query.Range
	for i, o := range r.Offsets {
		if o.Millis%span != 0 || i < len(r.Offsets)-1 && !on(o.UntilUTC) {
			return false
		}
	}
	return on(r.StartUTC) && on(r.EndUTC)
}

// sums adds up the settled records and what changed since.
func (w *printer) sums() string {
	var keys, selected, names []string
	for _, d := range w.Query.Dimensions {
		keys = append(keys, keyOf(d))
	}
	selected = append(selected, keys...)
	for _, m := range w.aggregates {
		selected = append(selected, "sum(s_"+m.Settled+") AS m_"+m.Name)
		names = append(names, m.Settled)
	}
	if !slices.Contains(names, w.settled.Records) {
		names = append(names, w.settled.Records)
	}
	from := indent(w.settledSums(names))
	if !w.Unchanged {
		from += "\n    UNION ALL\n" + indent(w.changedSums(names))
	}
	sql := "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM\n(\n" + from + "\n) AS r"
	if len(keys) > 0 {
		// A group whose records have all changed into others is none.
		sql += "\nGROUP BY " + strings.Join(keys, ", ") + "\nHAVING sum(s_" + w.settled.Records + ") > 0"
	}
	return sql
}

// settledSums adds up what is settled, which a projection has already done for every span of time.
func (w *printer) settledSums(names []string) string {
	start, last := w.ends()
	conditions := []string{
		ofOrganization,
		w.rollup.Time + " >= " + w.param("first_span", floorDiv(clamp(start).UnixMilli(), w.rollup.SpanMillis)),
		w.rollup.Time + " <= " + w.param("last_span", floorDiv(clamp(last).UnixMilli(), w.rollup.SpanMillis)),
	}
	key := func(name string) string { return name }
	sum := func(name string) string { return name }
	return w.sumsOf(names, w.settled.Table, conditions, fmt.Sprintf("%s * %d", w.rollup.Time, w.rollup.SpanMillis), key, sum)
}

// changedSums takes away what is settled of the records that changed since, and adds what they are now. It does so
// for every record of which a row was stored since: whichever of them a settler settles meanwhile,
// the sum of both is the same.
func (w *printer) changedSums(names []string) string {
	known := strings.Join(w.inRange(), " AND ")
	stored := known + " AND " + w.settled.StoredAt + " > " + w.instant("settled_ms", w.SettledUntil)
	columns := []string{w.settled.Clock}
	for i, c := range w.settled.Columns {
		columns = append(columns, fmt.Sprintf("tupleElement(tupleElement(change, 1), %d) AS %s", i+1, c.Name))
	}
	changes := "(\n    SELECT " + strings.Join(columns, ", ") + ", tupleElement(change, 2) AS sign" +
		"\n    FROM\n    (\n" + indent(indent(w.settled.Changes(known, stored))) + "\n    )" +
		"\n    ARRAY JOIN arrayConcat(if(was_settled = 1, [(old_record, toInt8(-1))], []), if(stored_first <= " + w.boundary() +
		", [(new_record, toInt8(1))], [])) AS change\n)"
	key := func(name string) string { return w.settled.Keys[name] }
	sum := func(name string) string { return w.settled.Sums[name] }
	return w.sumsOf(names, changes, nil, w.clockMillis(), key, sum)
}

// sumsOf adds up rows by what is grouped by.
func (w *printer) sumsOf(names []string, from string, conditions []string, clock string, key, sum func(string) string) string {
	var aliases, keys []string
	for _, name := range w.rollup.Keys {
		aliases = append(aliases, key(name)+" AS f_"+name)
	}
	if w.needDay {
		aliases = append(aliases, w.localDay(clock)+" AS f_day")
	}
	for _, d := range w.Query.Dimensions {
		keys = append(keys, keyOf(d))
	}
	selected := slices.Clone(keys)
	for _, name := range names {
		selected = append(selected, "sum("+sum(name)+") AS s_"+name)
	}
	sql := ""
	if len(aliases) > 0 {
		sql = "WITH\n    " + strings.Join(aliases, ",\n    ") + "\n"
	}
	sql += "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM " + from
	if conditions = append(conditions, w.kept()...); len(conditions) > 0 {
		sql += "\nWHERE " + strings.Join(conditions, "\n    AND ")
	}
	if len(keys) > 0 {
		sql += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	return sql
}

// floorDiv rounds down, also before 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
