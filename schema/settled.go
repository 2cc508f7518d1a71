package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A SettledTable holds the records of a source table with versions and repeats collapsed, as they
// were when they were last settled, in rows that add up: a record is counted by the sum of its
// rows' signs, and where it changed since, the old row is there once more with the sign -1. Its
// projections hold sums by time, so that their size does not grow with the records. DESIGN.md tells
// how it stays exact; package olap/settle writes it and olap/compile reads it.
type SettledTable struct {
	Table  string
	Source string
	Clock  string // the event clock, of both tables
	ID     string // of both tables
	// StoredAt is the source's column that tells when the newest version or repeat was stored.
	StoredAt string

	// Columns are the settled columns besides clock, id, first_stored_at and sign. A record whose columns
	// change is settled again; of several versions the greatest in this order counts.
	Columns []SettledColumn
	// First is the column of the source, a UInt128, that is greatest in the copy that counts where records are immutable: the
	// one stored first, and before all others the one that is settled. Empty where the greatest of Columns counts.
	First string
	// Counts is the condition over a row of the source that no other clock of the record counts instead. Of runs every row
	// counts: those of superseded clocks say so themselves.
	Counts string
	// Texts are what some of Columns stand for: of a record that changed, empty where it is settled.
	Texts []SettledColumn
	// SumColumns is how many of the first Columns the sums are made of.
	SumColumns int
	// Sums are what the projections add up, as SQL over the columns and the sign.
	Sums map[string]string
	// Records is the one of Sums that tells how many records there are.
	Records string
	// Keys are what may be grouped by besides the time.
	Keys []SettledKey
	// Rollups are the projections, the smallest first.
	Rollups []Rollup
}

// A SettledColumn is a column of a settled table.
type SettledColumn struct {
	Name    string
	SQL     string // its value over a row of the source
	Settled string // its value over a settled row; empty where it is a column there, as Name
}

// A SettledKey is something to group settled records by: a column of the settled table.
type SettledKey struct {
	Name    string
	SQL     string // over Columns
	Columns int    // how many of the first ones that takes
}

// A Rollup is a projection of a settled table that adds up by organization, time and keys.
type Rollup struct {
	Projection string
	Time       string // the column that numbers the spans of time since 1970-01-01T00:00Z
	SpanMillis int64  // the length of a span
	Keys       []string
}

const (
	// ColumnQuarter is the column of a settled row that numbers the quarters of an hour since 1970-01-01T00:00Z: the one that its clock lies in.
	ColumnQuarter = "quarter"
	// QuarterMillis is the length of a quarter of an hour, in milliseconds.
	QuarterMillis = 15 * 60 * 1000

	hourMillis = 4 * QuarterMillis
	weekMillis = 7 * 24 * hourMillis
)

const (
	// StarterSQL is the value of starter over the columns initiator and initiator_name: 80 bits of the number of
	// the initiator's identifier and 48 bits of the name, so that one key tells both. 0 stands for none.
	StarterSQL = "if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), " +
		"toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16)))))"

	// InitiatorOfSQL is the initiator's part of a starter for the identifier that stands for ?.
	InitiatorOfSQL = "bitShiftRight(reinterpretAsUInt128(sipHash128(?)), 48)"

	// StarterInitiatorShift is the lowest bit of the initiator's part of a starter.
	StarterInitiatorShift = 48

	initiator = "bitShiftRight(tupleElement(record, 'initiator'), 48)"
	// Without an identifier there is nobody whose name it could be.
	initiatorName = "if(isNull(tupleElement(record, 'initiator_identifier')), NULL, tupleElement(record, 'initiator_name'))"
)

// Settled are the settled tables. Their SQL is that of the migrations.
var Settled = []SettledTable{
	{
		Table: "settled_runs", Source: TableRuns, Clock: "created_at", ID: "run_id", StoredAt: "last_stored_at",
		Counts: "true",
		// As the record's winner is chosen: the name decides by its text, not by the hash in starter.
		Columns: []SettledColumn{
			{Name: "state", SQL: "tupleElement(record, 'state')"},
			{Name: "agent_id", SQL: "tupleElement(record, 'agent_id')"},
			{Name: "initiator", SQL: initiator, Settled: "bitShiftRight(starter, 48)"},
			{Name: "initiator_name", SQL: initiatorName},
		},
		Texts: []SettledColumn{
			{Name: "initiator_identifier", SQL: "tupleElement(record, 'initiator_identifier')", Settled: "CAST(NULL, 'Nullable(String)')"},
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
		Keys: []SettledKey{
			{Name: "agent_id", SQL: "agent_id", Columns: 2},
			{Name: "user_type", SQL: "toUInt8(bitAnd(state, 7))", Columns: 1},
			{Name: "starter", SQL: StarterSQL, Columns: 4},
		},
		Rollups: []Rollup{
			{Projection: "by_quarter", Time: ColumnQuarter, SpanMillis: QuarterMillis},
			{Projection: "by_user_type", Time: ColumnQuarter, SpanMillis: QuarterMillis, Keys: []string{"user_type"}},
			{Projection: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
			{Projection: "by_starter", Time: "week", SpanMillis: weekMillis, Keys: []string{"starter"}},
		},
	},
	{
		Table: "settled_attributions", Source: TableAttributions, Clock: "occurred_at", ID: "attribution_id", StoredAt: "first_stored_at",
		First:      "earliness",
		Counts:     "(organization_id, occurred_at, attribution_id) NOT IN (SELECT organization_id, clock, id" + supersededAttributions + ")",
		Columns:    []SettledColumn{{Name: "activity_type", SQL: "activity_type"}, {Name: "agent_id", SQL: "agent_id"}},
		Records:    "records",
		SumColumns: 1,
		Sums: map[string]string{
			"records":    "sign",
			"interacted": "if(activity_type = 'interacted', sign, 0)",
		},
		Keys: []SettledKey{{Name: "agent_id", SQL: "agent_id", Columns: 2}, {Name: "activity_type", SQL: "activity_type", Columns: 1}},
		Rollups: []Rollup{
			{Projection: "by_quarter", Time: ColumnQuarter, SpanMillis: QuarterMillis},
			{Projection: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
		},
	},
}

// sumOfStatus adds up the agent runs whose status satisfies a condition.
func sumOfStatus(condition string) string {
	return "if(bitAnd(bitShiftRight(state, 3), 7) = 1 AND bitAnd(bitShiftRight(state, 6), 15) " + condition + ", sign, 0)"
}

// SettledOf returns the settled table of a source, or nil.
func SettledOf(source string) *SettledTable {
	for i := range Settled {
		if Settled[i].Source == source {
			return &Settled[i]
		}
	}
	return nil
}

// Derived are all tables whose rows are made of those of the source tables.
func Derived() []string {
	tables := []string{TableStarters, TableSharedKeys}
	for _, t := range Settled {
		tables = append(tables, t.Table)
	}
	return tables
}

// Key returns the key called name, or nil.
func (t *SettledTable) Key(name string) *SettledKey {
	for i := range t.Keys {
		if t.Keys[i].Name == name {
			return &t.Keys[i]
		}
	}
	return nil
}

// Lists are of the first n of Columns and Texts, in their order: the SQL over the source, the SQL over settled rows, and the names.
func (t *SettledTable) Lists(n int) (ofSource, ofSettled, names []string) {
	for _, c := range slices.Concat(t.Columns, t.Texts)[:n] {
		ofSource, ofSettled, names = append(ofSource, c.SQL), append(ofSettled, cmp.Or(c.Settled, c.Name)), append(names, c.Name)
	}
	return ofSource, ofSettled, names
}

// ranked are Lists behind First, if there is one.
func (t *SettledTable) ranked(n int) (ofSource, ofSettled, names []string) {
	ofSource, ofSettled, names = t.Lists(n)
	if t.First == "" {
		return ofSource, ofSettled, names
	}
	const first = "bitNot(toUInt128(0))" // what is settled was stored before all else
	return slices.Insert(ofSource, 0, t.First), slices.Insert(ofSettled, 0, first), slices.Insert(names, 0, t.First)
}

// Partition is SQL of the partition key of a settled table: the year and its quarter.
func (t *SettledTable) Partition() string {
	return "toYear(" + t.Clock + ") * 10 + toQuarter(" + t.Clock + ")"
}

// Starters is SQL that selects the different starters of the rows of runs that satisfy a condition: organization_id, starter,
// initiator_identifier and initiator_name.
func Starters(condition string) string {
	return "WITH " + initiator + " AS initiator, " + initiatorName + " AS initiator_name SELECT DISTINCT organization_id, " + StarterSQL + " AS starter, " +
		"assumeNotNull(tupleElement(record, 'initiator_identifier')) AS initiator_identifier, initiator_name" +
		" FROM " + TableRuns + " WHERE " + condition + " AND isNotNull(tupleElement(record, 'initiator_identifier'))"
}

// Changes is SQL that selects the records of which a row was stored that satisfies the conditions stored (over
// the source). Settled rows are looked up among those that satisfy known, which must hold for every row of the
// records selected. before names a table with the SettledChanges as they were after an earlier look, when the same was settled: those records are
// selected too, and their settled rows not looked up again; empty for none. Its columns are organization_id, clock, id, new_record and old_record (tuples of First, if there is one, and the first n Columns and Texts),
// was_settled (0 or 1) and stored_first (when the record was first stored). Records that were created in the same
// millisecond as one of them may be selected too, with old_record and new_record alike.
func (t *SettledTable) Changes(known, stored, before string, n int) string {
	ofSource, ofSettled, names := t.ranked(n)
	key := strings.Join(t.RecordKey(), ", ")
	changed := "FROM " + t.Source + " WHERE " + stored
	unknown, remembered := "", ""
	if before != "" {
		unknown = " AND " + t.Clock + " NOT IN (SELECT " + t.Clock + " FROM " + before + ")"
		remembered = "\n    UNION ALL" +
			"\n    SELECT " + key + ", tuple(" + strings.Join(names, ", ") + "), first_stored_at, sign = -1" +
			"\n    FROM " + before
	}
	return "SELECT " + key + ", max(record) AS new_record, maxIf(record, is_settled) AS old_record, max(is_settled) AS was_settled, min(stored_at) AS stored_first" +
		"\nFROM\n(" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofSource, ", ") + ") AS record, first_stored_at AS stored_at, 0 AS is_settled" +
		"\n    " + changed +
		"\n    UNION ALL" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(ofSettled, ", ") + "), first_stored_at, 1" +
		// The event clock alone finds the rows by the sorting key as well as the whole key does, at a quarter of the price. Rows
		// with the sign -1 are older than the last one with 1, so that the greatest is that one.
		"\n    FROM " + t.Table + " WHERE " + known + " AND " + t.Clock + " IN (SELECT " + t.Clock + " " + changed + unknown + ")" +
		remembered +
		"\n)" +
		"\nGROUP BY " + key
}

// RecordKey are the columns that name a record.
func (t *SettledTable) RecordKey() []string { return []string{"organization_id", t.Clock, t.ID} }

// Signed is SQL that selects records of Changes, whose SQL with n is changes, as rows that add up: the keys, the first n Columns
// and Texts, first_stored_at (of the record) and sign. The rows with the sign -1 take away what is settled; those with 1
// are what the records are now. A WHERE may follow.
func (t *SettledTable) Signed(changes string, n int, keys ...string) string {
	columns := slices.Clone(keys)
	_, _, names := t.Lists(n)
	_, _, ranked := t.ranked(n)
	for i, name := range names {
		columns = append(columns, fmt.Sprintf("tupleElement(tupleElement(change, 1), %d) AS %s", i+1+len(ranked)-len(names), name))
	}
	return "SELECT " + strings.Join(columns, ", ") + ", stored_first AS first_stored_at, tupleElement(change, 2) AS sign" +
		"\nFROM\n(\n    " + strings.ReplaceAll(changes, "\n", "\n    ") + "\n)" +
		"\nARRAY JOIN if(was_settled = 1, [(old_record, toInt8(-1)), (new_record, toInt8(1))], [(new_record, toInt8(1))]) AS change"
}

// SignedChanges is SQL that selects all Changes as Signed rows, with the clock as their key. Those that changed nothing are
// among them: what was first stored after an inclusion boundary is taken away only.
func (t *SettledTable) SignedChanges(known, stored string, n int) string {
	return t.Signed(t.Changes(known, stored, "", n), n, t.Clock)
}

// SettledChanges is SQL that selects Changes with all Columns and Texts as Signed rows, and what a settled row has besides: the keys and the sums.
// The names of Remembered are among its columns.
func (t *SettledTable) SettledChanges(known, stored, before string) string {
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

// Remembered are the columns of SettledChanges that Changes needs of those before.
func (t *SettledTable) Remembered() []string {
	_, _, names := t.ranked(len(t.Columns) + len(t.Texts))
	return slices.Concat(t.RecordKey(), names, []string{"first_stored_at", "sign"})
}
