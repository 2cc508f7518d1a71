package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runlens/runlens/schema/sql"
)

// The delta is what the rollup lacks: for every record of which a row was stored after the watermark, the row that the
// rollup has with the sign -1, and the row that the record is now with the sign 1. It is relative to what the rollup
// has when the statement runs. Therefore an earlier watermark only makes the delta longer, and a record that a
// refresher writes meanwhile has the same sums.

// A Reading says of which rows a delta is. Its conditions are SQL.
type Reading struct {
	Read   sql.Reader
	Known  []string // of rows of the rollup, true for every row of the records that are selected
	Stored []string // of rows of the source
	// Before names a table with the DeltaRows of an earlier reading, when the rollup was the same: those records are
	// selected too, and not looked up again; empty for none.
	Before string
}

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
	// The first of those with its stamp: its content was found to be the one that counts. Only a copy that was stored
	// when the store's clock had been set back has an earlier stamp.
	const first = "bitOr(bitShiftLeft(toUInt128(toUInt64(18446744073709551615 - toUnixTimestamp64Milli(" +
		"first_stored_at))), 64), 18446744073709551615)"
	return slices.Insert(ofSource, 0, t.First), slices.Insert(ofRollup, 0, first), slices.Insert(names, 0, t.First)
}

// Changed selects the records of which a row was stored that satisfies the conditions of a reading.
//
// Its columns are organization_id, clock, id, new_record and old_record (tuples of First, if there is one, and the
// first n Columns), was_in_rollup (0 or 1), stored_first (when the record was first stored) and old_first (when it was
// by the rollup: later, if the store's clock was set back since and the record stored again). Records with the same
// clock as one of them may be selected too, with old_record and new_record alike.
func (t *RollupTable) Changed(r Reading, n int) sql.Select {
	ofSource, ofRollup, names := t.ranked(n)
	columns := func(record []string, more ...string) []string {
		return slices.Concat(t.RecordKey(), []string{"tuple(" + strings.Join(record, ", ") + ") AS record"}, more)
	}
	unknown := slices.Clone(r.Stored)
	if r.Before != "" {
		unknown = append(unknown, sql.NotIn(sql.Select{Columns: []string{t.Clock}, From: sql.Sent(r.Before)}, t.Clock))
	}
	clocks := sql.Select{Columns: []string{t.Clock}, From: r.Read(t.Source), Where: unknown}
	rows := []sql.Select{
		{
			Columns: columns(ofSource, "first_stored_at AS stored_at", "0 AS in_rollup"),
			From:    r.Read(t.Source), Where: r.Stored,
		},
		{
			// The clock alone finds rows by the sorting key as well as the whole key does, at a quarter of the price. Rows
			// with the sign -1 are older than the last one with 1, so that the greatest is that one.
			Columns: columns(ofRollup, "first_stored_at", "1"),
			From:    r.Read(t.Table), Where: append(slices.Clone(r.Known), t.Clock+" IN"+sql.In(clocks)),
		},
	}
	if r.Before != "" {
		rows = append(rows, sql.Select{Columns: columns(names, "first_stored_at", "sign = -1"), From: sql.Sent(r.Before)})
	}
	return sql.Select{
		Columns: append(t.RecordKey(), "max(record) AS new_record", "maxIf(record, in_rollup) AS old_record",
			"max(in_rollup) AS was_in_rollup", "min(stored_at) AS stored_first", "minIf(stored_at, in_rollup) AS old_first"),
		From: sql.Query(sql.Union(rows)), Group: t.RecordKey(),
	}
}

// Signed selects records of Changed with n as signed rows: the keys, the first n Columns, first_stored_at (of the
// record, in a row that takes away as the rollup has it) and sign.
func (t *RollupTable) Signed(changed sql.Select, n int, keys ...string) sql.Select {
	columns := slices.Clone(keys)
	_, _, names := t.Lists(n)
	_, _, ranked := t.ranked(n)
	for i, name := range names {
		columns = append(columns, fmt.Sprintf("tupleElement(tupleElement(change, 1), %d) AS %s", i+1+len(ranked)-len(names),
			name))
	}
	return sql.Select{
		Columns: append(columns, "tupleElement(change, 3) AS first_stored_at", "tupleElement(change, 2) AS sign"),
		From:    sql.Query(changed),
		Array: "if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)]," +
			" [(new_record, toInt8(1), stored_first)]) AS change",
	}
}

// InlineDelta selects the delta with the clock as its key, to be computed within a statement. Records that did not
// change are among it: what was first stored after an inclusion boundary is taken away only.
func (t *RollupTable) InlineDelta(r Reading, n int) sql.Select {
	return t.Signed(t.Changed(r, n), n, t.Clock)
}

// DeltaRows selects the delta with the first deltaColumns, and with the keys that are made of them and the sums of the
// rollup row. ColumnsBefore are among its columns.
func (t *RollupTable) DeltaRows(r Reading) sql.Select {
	const n = deltaColumns
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
	return sql.Select{
		Columns: append(selected, "first_stored_at", "sign"), From: sql.Query(t.Signed(t.Changed(r, n), n, keys...)),
	}
}

// ColumnsBefore are the columns of DeltaRows that Changed needs of those before.
func (t *RollupTable) ColumnsBefore() []string {
	_, _, names := t.ranked(deltaColumns)
	return slices.Concat(t.RecordKey(), names, []string{"first_stored_at", "sign"})
}
