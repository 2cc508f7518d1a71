package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The delta is what the rollup lacks: for every record of which a row was stored after the watermark, the row that the
// rollup has with the sign -1, and the row that the record is now with the sign 1. It is relative to what the rollup
// has when the statement runs. Therefore an earlier watermark only makes the delta longer, and a record that a
// refresher writes meanwhile has the same sums.

// Lists are of the first n of Columns: the SQL over the source, the SQL over the rollup, and the names.
func (t *RollupTable) Lists(n int) (ofSource, ofRollup, names []string) {
	for _, c := range t.Columns[:n] {
		ofSource, ofRollup, names = append(ofSource, c.SQL), append(ofRollup, cmp.Or(c.InRollup, c.Name)),
			append(names, c.Name)
	}
	return ofSource, ofRollup, names
}

// ranked are Lists after First, if there is one.
func (t *RollupTable) ranked(n int) (ofSource, ofRollup, names []string) {
	ofSource, ofRollup, names = t.Lists(n)
	if t.First == "" {
		return ofSource, ofRollup, names
	}
	const first = "bitNot(toUInt128(0))" // what the rollup has was stored before all else
	return slices.Insert(ofSource, 0, t.First), slices.Insert(ofRollup, 0, first), slices.Insert(names, 0, t.First)
}

// Changed is SQL that selects the records of which a row was stored that satisfies the conditions stored (over the
// source). Rows of the rollup are looked up among those that satisfy known, which must be true for every row of the
// records selected. before names a table with the DeltaRows of an earlier reading, when the rollup was the same: those
// records are selected too, and not looked up again; empty for none.
//
// Its columns are organization_id, clock, id, new_record and old_record (tuples of First, if there is one, and the
// first n Columns), was_in_rollup (0 or 1) and stored_first (when the record was first stored). Records with
// the same clock as one of them may be selected too, with old_record and new_record alike.
func (t *RollupTable) Changed(known, stored, before string, n int) string {
	ofSource, ofRollup, names := t.ranked(n)
	key := strings.Join(t.RecordKey(), ", ")
	changed := "FROM " + t.Source + " WHERE " + stored
	unknown, cached := "", ""
	if before != "" {
		unknown = " AND " + t.Clock + " NOT IN (SELECT " + t.Clock + " FROM " + before + ")"
		cached = "\n    UNION ALL" +
			"\n    SELECT " + key + ", tuple(" + strings.Join(names, ", ") + "), first_stored_at, sign = -1" +
			"\n    FROM " + before
	}
	return "SELECT " + key + ", max(record) AS new_record, maxIf(record, in_rollup) AS old_record," +
		" max(in_rollup) AS was_in_rollup, min(stored_at) AS stored_first" +
		"\nFROM\n(" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofSource, ", ") + ") AS record, first_stored_at AS stored_at," +
		" 0 AS in_rollup" +
		"\n    " + changed +
		"\n    UNION ALL" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofRollup, ", ") + "), first_stored_at, 1" +
		// The clock alone finds rows by the sorting key as well as the whole key does, at a quarter of the price. Rows
		// with the sign -1 are older than the last one with 1, so that the greatest is that one.
		"\n    FROM " + t.Table + " WHERE " + known + " AND " + t.Clock + " IN (SELECT " + t.Clock + " " + changed + unknown +
		")" +
		cached +
		"\n)" +
		"\nGROUP BY " + key
}

// Signed is SQL that selects records of Changed, whose SQL with n is changed, as signed rows: the keys, the first n
// Columns, first_stored_at (of the record) and sign. A WHERE may follow.
func (t *RollupTable) Signed(changed string, n int, keys ...string) string {
	columns := slices.Clone(keys)
	_, _, names := t.Lists(n)
	_, _, ranked := t.ranked(n)
	for i, name := range names {
		columns = append(columns, fmt.Sprintf("tupleElement(tupleElement(change, 1), %d) AS %s", i+1+len(ranked)-len(names),
			name))
	}
	return "SELECT " + strings.Join(columns, ", ") + ", stored_first AS first_stored_at, tupleElement(change, 2) AS sign" +
		"\nFROM\n(\n    " + strings.ReplaceAll(changed, "\n", "\n    ") + "\n)" +
		"\nARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1)), (new_record, toInt8(1))]," +
		" [(new_record, toInt8(1))]) AS change"
}

// InlineDelta is SQL that selects the delta with the clock as its key, to be computed within a statement. Records that
// did not change are among it: what was first stored after an inclusion boundary is taken away only.
func (t *RollupTable) InlineDelta(known, stored string, n int) string {
	return t.Signed(t.Changed(known, stored, "", n), n, t.Clock)
}

// DeltaRows is SQL that selects the delta with the first DeltaColumns, and with the keys that are made of them and the
// sums of the rollup row. ColumnsBefore are among its columns. before is that of Changed.
func (t *RollupTable) DeltaRows(known, stored, before string) string {
	n := t.DeltaColumns
	_, _, names := t.ranked(n)
	selected, keys := slices.Concat(t.RecordKey(), names), t.RecordKey()
	if t.First != "" {
		keys = append(keys, "tupleElement(tupleElement(change, 1), 1) AS "+t.First)
	}
	for _, k := range t.Keys {
		if k.Columns <= n && !slices.Contains(names, k.Name) {
			selected = append(selected, k.SQL+" AS "+k.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Sums)) {
		selected = append(selected, t.Sums[name]+" AS "+name)
	}
	return "SELECT " + strings.Join(selected, ", ") + ", first_stored_at, sign" +
		"\nFROM\n(\n" + t.Signed(t.Changed(known, stored, before, n), n, keys...) + "\n)"
}

// ColumnsBefore are the columns of DeltaRows that Changed needs of those before.
func (t *RollupTable) ColumnsBefore() []string {
	_, _, names := t.ranked(t.DeltaColumns)
	return slices.Concat(t.RecordKey(), names, []string{"first_stored_at", "sign"})
}
