package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A RollupTable holds the records of a source table with versions and repeats collapsed, as they
// were when they were last refreshed, in rows that add up: a record is counted by the sum of its
// rows' signs, and where it changed since, the old row is there once more with the sign -1. Its
// projections hold sums by time, so that their size does not grow with the records. DESIGN.md tells
// how it stays exact; package olap/rollup writes it and olap/compile reads it.
type RollupTable struct {
	Table  string
	Source string
	Clock  string // the event clock, of both tables
	ID     string // of both tables
	// StoredAt is the source's column that tells when the newest version or repeat was stored.
	StoredAt string

	// Columns are the refreshed columns besides clock, id, first_stored_at and sign. A record whose columns
	// change is refreshed again; of several versions the greatest in this order counts.
	Columns []RollupColumn
	// First is the column of the source, a UInt128, that is greatest in the copy that counts where records are immutable: the
	// one stored first, and before all others the one that is refreshed. Empty where the greatest of Columns counts.
	First string
	// Counts is the condition over a row of the source that no other clock of the record counts instead. Of runs every row
	// counts: those of superseded clocks say so themselves.
	Counts string
	// Texts are what some of Columns stand for: of a record that changed, empty where it is refreshed.
	Texts []RollupColumn
	// SumColumns is how many of the first Columns the sums are made of.
	SumColumns int
	// Sums are what the projections add up, as SQL over the columns and the sign.
	Sums map[string]string
	// Records is the one of Sums that tells how many records there are.
	Records string
	// Keys are what may be grouped by besides the time.
	Keys []RollupKey
	// Projections are the projections, the smallest first.
	Projections []Projection
}

// A RollupColumn is a column of a rollup table.
type RollupColumn struct {
	Name     string
	SQL      string // its value over a row of the source
	InRollup string // its value over a rollup row; empty where it is a column there, as Name
}

// A RollupKey is something to group records in the rollup by: a column of the rollup table.
type RollupKey struct {
	Name    string
	SQL     string // over Columns
	Columns int    // how many of the first ones that takes
}

// A Projection is a projection of a rollup table that adds up by organization, time and keys.
type Projection struct {
	Name       string
	Time       string // the column that numbers the spans of time since 1970-01-01T00:00Z
	SpanMillis int64  // the length of a span
	Keys       []string
}

const (
	// ColumnQuarter is the column of a rollup row that numbers the quarters of an hour since 1970-01-01T00:00Z: the one that its clock lies in.
	ColumnQuarter = "quarter"
	// QuarterMillis is the length of a quarter of an hour, in milliseconds.
	QuarterMillis = 15 * 60 * 1000

	hourMillis = 4 * QuarterMillis
	weekMillis = 7 * 24 * hourMillis
)

const (
	// InitiatorKeySQL is the value of initiator_key over the columns initiator and initiator_name: 80 bits of the number of
	// the initiator's identifier and 48 bits of the name, so that one key tells both. 0 stands for none.
	InitiatorKeySQL = "if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), " +
		"toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16)))))"

	// InitiatorOfSQL is the initiator's part of a initiator_key for the identifier that stands for ?.
	InitiatorOfSQL = "bitShiftRight(reinterpretAsUInt128(sipHash128(?)), 48)"

	// InitiatorKeyShift is the lowest bit of the initiator's part of a initiator_key.
	InitiatorKeyShift = 48

	initiator = "bitShiftRight(tupleElement(record, 'initiator'), 48)"
	// Without an identifier there is nobody whose name it could be.
	initiatorName = "if(isNull(tupleElement(record, 'initiator_identifier')), NULL, tupleElement(record, 'initiator_name'))"
)

// RollupTables are the rollup. Their SQL is that of the migrations.
var RollupTables = []RollupTable{
	{
		Table: "rollup_runs", Source: TableRuns, Clock: "created_at", ID: "run_id", StoredAt: "last_stored_at",
		Counts: "true",
		// As the record's winner is chosen: the name decides by its text, not by the hash in initiator_key.
		Columns: []RollupColumn{
			{Name: "state", SQL: "tupleElement(record, 'state')"},
			{Name: "agent_id", SQL: "tupleElement(record, 'agent_id')"},
			{Name: "initiator", SQL: initiator, InRollup: "bitShiftRight(initiator_key, 48)"},
			{Name: "initiator_name", SQL: initiatorName},
		},
		Texts: []RollupColumn{
			{Name: "initiator_identifier", SQL: "tupleElement(record, 'initiator_identifier')", InRollup: "CAST(NULL, 'Nullable(String)')"},
		},
		Records:    "runs",
		SumColumns: 1,
		Sums: map[string]string{
			"runs":      "if(bitAnd(bitShiftRight(state, 3), 7) = 1, sign, 0)",
			"completed": sumOfStatus("= 9"),
			"failed":    sumOfStatus("= 10"),
			"cancelled": sumOfStatus("= 11"),
			"active":    sumOfStatus("BETWEEN 1 AND 8"),
		},
		Keys: []RollupKey{
			{Name: "agent_id", SQL: "agent_id", Columns: 2},
			{Name: "user_type", SQL: "toUInt8(bitAnd(state, 7))", Columns: 1},
			{Name: "initiator_key", SQL: InitiatorKeySQL, Columns: 4},
		},
		Projections: []Projection{
			{Name: "by_quarter", Time: ColumnQuarter, SpanMillis: QuarterMillis},
			{Name: "by_user_type", Time: ColumnQuarter, SpanMillis: QuarterMillis, Keys: []string{"user_type"}},
			{Name: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
			{Name: "by_initiator_key", Time: "week", SpanMillis: weekMillis, Keys: []string{"initiator_key"}},
		},
	},
	{
		Table: "rollup_attributions", Source: TableAttributions, Clock: "occurred_at", ID: "attribution_id", StoredAt: "first_stored_at",
		First:      "inverted_timestamp",
		Counts:     "(organization_id, occurred_at, attribution_id) NOT IN (SELECT organization_id, clock, id" + supersededAttributions + ")",
		Columns:    []RollupColumn{{Name: "activity_type", SQL: "activity_type"}, {Name: "agent_id", SQL: "agent_id"}},
		Records:    "records",
		SumColumns: 1,
		Sums: map[string]string{
			"records":    "sign",
			"interacted": "if(activity_type = 'interacted', sign, 0)",
		},
		Keys: []RollupKey{{Name: "agent_id", SQL: "agent_id", Columns: 2}, {Name: "activity_type", SQL: "activity_type", Columns: 1}},
		Projections: []Projection{
			{Name: "by_quarter", Time: ColumnQuarter, SpanMillis: QuarterMillis},
			{Name: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
		},
	},
}

// sumOfStatus adds up the agent runs whose status satisfies a condition.
func sumOfStatus(condition string) string {
	return "if(bitAnd(bitShiftRight(state, 3), 7) = 1 AND bitAnd(bitShiftRight(state, 6), 15) " + condition + ", sign, 0)"
}

// RollupOf returns the rollup table of a source, or nil.
func RollupOf(source string) *RollupTable {
	for i := range RollupTables {
		if RollupTables[i].Source == source {
			return &RollupTables[i]
		}
	}
	return nil
}

// Derived are all tables whose rows are made of those of the source tables.
func Derived() []string {
	tables := []string{TableInitiatorKeys, TableSharedKeys}
	for _, t := range RollupTables {
		tables = append(tables, t.Table)
	}
	return tables
}

// Key returns the key called name, or nil.
func (t *RollupTable) Key(name string) *RollupKey {
	for i := range t.Keys {
		if t.Keys[i].Name == name {
			return &t.Keys[i]
		}
	}
	return nil
}

// Lists are of the first n of Columns and Texts, in their order: the SQL over the source, the SQL over rollup rows, and the names.
func (t *RollupTable) Lists(n int) (ofSource, ofRollup, names []string) {
	for _, c := range slices.Concat(t.Columns, t.Texts)[:n] {
		ofSource, ofRollup, names = append(ofSource, c.SQL), append(ofRollup, cmp.Or(c.InRollup, c.Name)), append(names, c.Name)
	}
	return ofSource, ofRollup, names
}

// ranked are Lists behind First, if there is one.
func (t *RollupTable) ranked(n int) (ofSource, ofRollup, names []string) {
	ofSource, ofRollup, names = t.Lists(n)
	if t.First == "" {
		return ofSource, ofRollup, names
	}
	const first = "bitNot(toUInt128(0))" // what is refreshed was stored before all else
	return slices.Insert(ofSource, 0, t.First), slices.Insert(ofRollup, 0, first), slices.Insert(names, 0, t.First)
}

// Partition is SQL of the partition key of a rollup table: the year and its quarter.
func (t *RollupTable) Partition() string {
	return "toYear(" + t.Clock + ") * 10 + toQuarter(" + t.Clock + ")"
}

// InitiatorKeys is SQL that selects the different initiator_keys of the rows of runs that satisfy a condition: organization_id, initiator_key,
// initiator_identifier and initiator_name.
func InitiatorKeys(condition string) string {
	return "WITH " + initiator + " AS initiator, " + initiatorName + " AS initiator_name SELECT DISTINCT organization_id, " + InitiatorKeySQL + " AS initiator_key, " +
		"assumeNotNull(tupleElement(record, 'initiator_identifier')) AS initiator_identifier, initiator_name" +
		" FROM " + TableRuns + " WHERE " + condition + " AND isNotNull(tupleElement(record, 'initiator_identifier'))"
}

// Changes is SQL that selects the records of which a row was stored that satisfies the conditions stored (over
// the source). Rollup rows are looked up among those that satisfy known, which must hold for every row of the
// records selected. before names a table with the RollupDelta as they were after an earlier look, when the same was refreshed: those records are
// selected too, and their rollup rows not looked up again; empty for none. Its columns are organization_id, clock, id, new_record and old_record (tuples of First, if there is one, and the first n Columns and Texts),
// was_in_rollup (0 or 1) and stored_first (when the record was first stored). Records that were created in the same
// millisecond as one of them may be selected too, with old_record and new_record alike.
func (t *RollupTable) Changes(known, stored, before string, n int) string {
	ofSource, ofRollup, names := t.ranked(n)
	key := strings.Join(t.RecordKey(), ", ")
	changed := "FROM " + t.Source + " WHERE " + stored
	unknown, remembered := "", ""
	if before != "" {
		unknown = " AND " + t.Clock + " NOT IN (SELECT " + t.Clock + " FROM " + before + ")"
		remembered = "\n    UNION ALL" +
			"\n    SELECT " + key + ", tuple(" + strings.Join(names, ", ") + "), first_stored_at, sign = -1" +
			"\n    FROM " + before
	}
	return "SELECT " + key + ", max(record) AS new_record, maxIf(record, in_rollup) AS old_record, max(in_rollup) AS was_in_rollup, min(stored_at) AS stored_first" +
		"\nFROM\n(" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofSource, ", ") + ") AS record, first_stored_at AS stored_at, 0 AS in_rollup" +
		"\n    " + changed +
		"\n    UNION ALL" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofRollup, ", ") + "), first_stored_at, 1" +
		// The event clock alone finds the rows by the sorting key as well as the whole key does, at a quarter of the price. Rows
		// with the sign -1 are older than the last one with 1, so that the greatest is that one.
		"\n    FROM " + t.Table + " WHERE " + known + " AND " + t.Clock + " IN (SELECT " + t.Clock + " " + changed + unknown + ")" +
		remembered +
		"\n)" +
		"\nGROUP BY " + key
}

// RecordKey are the columns that name a record.
func (t *RollupTable) RecordKey() []string { return []string{"organization_id", t.Clock, t.ID} }

// Signed is SQL that selects records of Changes, whose SQL with n is changes, as rows that add up: the keys, the first n Columns
// and Texts, first_stored_at (of the record) and sign. The rows with the sign -1 take away what is refreshed; those with 1
// are what the records are now. A WHERE may follow.
func (t *RollupTable) Signed(changes string, n int, keys ...string) string {
	columns := slices.Clone(keys)
	_, _, names := t.Lists(n)
	_, _, ranked := t.ranked(n)
	for i, name := range names {
		columns = append(columns, fmt.Sprintf("tupleElement(tupleElement(change, 1), %d) AS %s", i+1+len(ranked)-len(names), name))
	}
	return "SELECT " + strings.Join(columns, ", ") + ", stored_first AS first_stored_at, tupleElement(change, 2) AS sign" +
		"\nFROM\n(\n    " + strings.ReplaceAll(changes, "\n", "\n    ") + "\n)" +
		"\nARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1)), (new_record, toInt8(1))], [(new_record, toInt8(1))]) AS change"
}

// SignedChanges is SQL that selects all Changes as Signed rows, with the clock as their key. Those that changed nothing are
// among them: what was first stored after an inclusion boundary is taken away only.
func (t *RollupTable) SignedChanges(known, stored string, n int) string {
	return t.Signed(t.Changes(known, stored, "", n), n, t.Clock)
}

// RollupDelta is SQL that selects Changes with all Columns and Texts as Signed rows, and what a rollup row has besides: the keys and the sums.
// The names of Remembered are among its columns.
func (t *RollupTable) RollupDelta(known, stored, before string) string {
	n := len(t.Columns) + len(t.Texts)
	_, _, names := t.ranked(n)
	selected, keys := slices.Concat(t.RecordKey(), names), t.RecordKey()
	if t.First != "" {
		keys = append(keys, "tupleElement(tupleElement(change, 1), 1) AS "+t.First)
	}
	for _, k := range t.Keys {
		if !slices.Contains(names, k.Name) {
			selected = append(selected, k.SQL+" AS "+k.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Sums)) {
		selected = append(selected, t.Sums[name]+" AS "+name)
	}
	return "SELECT " + strings.Join(selected, ", ") + ", first_stored_at, sign\nFROM\n(\n" + t.Signed(t.Changes(known, stored, before, n), n, keys...) + "\n)"
}

// Remembered are the columns of RollupDelta that Changes needs of those before.
func (t *RollupTable) Remembered() []string {
	_, _, names := t.ranked(len(t.Columns) + len(t.Texts))
	return slices.Concat(t.RecordKey(), names, []string{"first_stored_at", "sign"})
}
