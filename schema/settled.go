package schema

import "strings"

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
	// Sums are what the projections add up, as SQL over the columns and the sign.
	Sums map[string]string
	// Records is the one of Sums that tells how many records there are.
	Records string
	// Keys are what the projections may group by besides the time, as SQL over the columns.
	Keys map[string]string
	// Rollups are the projections, the smallest first.
	Rollups []Rollup
}

// A SettledColumn is a column with the SQL of its value over a row of the source.
type SettledColumn struct{ Name, SQL string }

// A Rollup is a projection of a settled table that adds up by organization, time and keys.
type Rollup struct {
	Projection string
	Time       string // the column that numbers the spans of time since 1970-01-01T00:00Z
	SpanMillis int64  // the length of a span
	Keys       []string
}

const (
	quarterMillis = 15 * 60 * 1000
	hourMillis    = 4 * quarterMillis
)

// Settled are the settled tables. Their SQL is that of the migrations.
var Settled = []SettledTable{
	{
		Table: "settled_runs", Source: TableRuns, Clock: "created_at", ID: "run_id", StoredAt: "last_stored_at",
		Columns: []SettledColumn{{"state", "state"}, {"agent_id", "tupleElement(agent, 'agent_id')"}},
		Records: "runs",
		Sums: map[string]string{
			"runs":      "if(bitAnd(bitShiftRight(state, 3), 7) = 1, sign, 0)",
			"completed": sumOfStatus("= 9"),
			"failed":    sumOfStatus("= 10"),
			"cancelled": sumOfStatus("= 11"),
			"active":    sumOfStatus("BETWEEN 1 AND 8"),
		},
		Keys: map[string]string{"agent_id": "agent_id", "user_type": "toUInt8(bitAnd(state, 7))"},
		Rollups: []Rollup{
			{Projection: "by_quarter", Time: "quarter", SpanMillis: quarterMillis},
			{Projection: "by_user_type", Time: "quarter", SpanMillis: quarterMillis, Keys: []string{"user_type"}},
			{Projection: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
		},
	},
	{
		Table: "settled_attributions", Source: TableAttributions, Clock: "occurred_at", ID: "attribution_id", StoredAt: "first_stored_at",
		Columns: []SettledColumn{{"agent_id", "agent_id"}, {"activity_type", "activity_type"}},
		Records: "records",
		Sums: map[string]string{
			"records":    "sign",
			"interacted": "if(activity_type = 'interacted', sign, 0)",
		},
		Keys: map[string]string{"agent_id": "agent_id"},
		Rollups: []Rollup{
			{Projection: "by_quarter", Time: "quarter", SpanMillis: quarterMillis},
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

// Lists are the SQL and the names of Columns, in their order.
func (t *SettledTable) Lists() (sql, names []string) {
	for _, c := range t.Columns {
		sql, names = append(sql, c.SQL), append(names, c.Name)
	}
	return sql, names
}

// Changes is SQL that selects the records of which a row was stored that satisfies the conditions stored (over
// the source). Settled rows are looked up among those that satisfy known, which must hold for every row of the
// records selected. Its columns are organization_id, clock, id, new_record and old_record (tuples of Columns),
// was_settled (0 or 1) and stored_first (when the record was first stored). Records that were created in the same
// millisecond as one of them may be selected too, with old_record and new_record alike.
func (t *SettledTable) Changes(known, stored string) string {
	sql, names := t.Lists()
	key := "organization_id, " + t.Clock + ", " + t.ID
	changed := "FROM " + t.Source + " WHERE " + stored
	return "SELECT " + key + ", max(record) AS new_record, maxIf(record, is_settled) AS old_record, max(is_settled) AS was_settled, min(stored_at) AS stored_first" +
		"\nFROM\n(" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(sql, ", ") + ") AS record, first_stored_at AS stored_at, 0 AS is_settled" +
		"\n    " + changed +
		"\n    UNION ALL" +
		"\n    SELECT " + key + ", tuple(" + strings.Join(names, ", ") + "), first_stored_at, 1" +
		// The event clock alone finds the rows by the sorting key as well as the whole key does, at a quarter of the price.
		"\n    FROM " + t.Table + " WHERE " + known + " AND sign = 1 AND " + t.Clock + " IN (SELECT " + t.Clock + " " + changed + ")" +
		"\n)" +
		"\nGROUP BY " + key
}
