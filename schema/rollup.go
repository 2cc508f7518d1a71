package schema

import (
	"fmt"
	"math"
	"slices"

	"github.com/runlens/runlens/schema/sql"
)

// A RollupTable has the current row of every record of a source table, versions and repeats collapsed, as signed rows.
// A record is counted by the sum of the signs of its rows: where it changed, the former row is there once more with the
// sign -1. Its projections hold sums by spans of time, so that their size does not grow with the records. Package
// olap/rollup writes it and says how it stays exact; olap/compile reads it.
type RollupTable struct {
	Table  string
	Source string
	Clock  string // the event clock, of both tables
	ID     string // of both tables
	// StoredAt is the source's column that says when the newest version or repeat was stored.
	StoredAt string

	// Columns are the columns besides clock, id, first_stored_at and sign. A record whose columns change is refreshed;
	// of several versions the greatest in this order counts.
	Columns []RollupColumn
	// First is the column of the source, a UInt128, that is greatest in the copy that counts where records are
	// immutable: the one with the earliest stamp. Whether they count at all, TableConflicts says (Counts). Empty where the
	// greatest of Columns counts.
	First string
	// Sums are what the projections aggregate, as SQL over the first SumColumns and the sign.
	Sums map[string]string
	// Records is the one of Sums that counts the records.
	Records string
	// Keys are what may be grouped by, in addition to the time.
	Keys []RollupKey
	// Projections, the smallest first.
	Projections []Projection
}

const (
	// SumColumns is how many of the first Columns of a rollup table its Sums are made of.
	SumColumns = 1
	// deltaColumns is how many of them a delta has that is read apart from a statement (DeltaRows): initiator keys are
	// computed inline (decisions/delta.md).
	deltaColumns = 2
)

// A RollupColumn is a column of a rollup table.
type RollupColumn struct {
	Name     string
	SQL      string // its value over a row of the source
	InRollup string // its value over a row of the rollup; empty where it is a column there, as Name
}

// A RollupKey is something to group by: a column of the rollup table.
type RollupKey struct {
	Name    string
	SQL     string // over Columns
	Columns int    // how many of the first ones that takes
}

// A Projection aggregates the rows of a rollup table by organization, time and keys.
type Projection struct {
	Name       string
	Time       string // the column that numbers the spans of time since 1970-01-01T00:00Z
	SpanMillis int64  // the length of a span
	Keys       []string
}

const (
	// ColumnQuarter is the column that numbers the quarters of an hour since 1970-01-01T00:00Z.
	ColumnQuarter = "quarter"
	// QuarterMillis is the length of a quarter of an hour, in milliseconds.
	QuarterMillis = 15 * 60 * 1000

	hourMillis = 4 * QuarterMillis
	weekMillis = 7 * 24 * hourMillis
)

// SpanOf is the number of the span of time of a length in milliseconds, counted from 1970-01-01T00:00Z, that an instant
// in Unix milliseconds lies in; it rounds down, also before 1970.
func SpanOf(millis, length int64) int64 {
	n := millis / length
	if millis%length < 0 {
		n--
	}
	return n
}

// StoredAfter is the condition that a row of the source was stored after an instant, which is SQL. It has ClickHouse
// read the projection that is sorted by that: of two that have all columns of a statement it may choose neither, and
// then reads all rows. So the condition is also over a column that only one of them has, and true of every row.
func (t *RollupTable) StoredAfter(instant string) string {
	after := t.StoredAt + " > " + instant
	if t.First != "" {
		after += " AND " + t.First + " != 0"
	}
	return after
}

// RollupTables are the rollup tables. Their SQL is that of the migrations (TestRollupColumnsAreThoseOfTheTables).
var RollupTables = []*RollupTable{
	{
		Table: "rollup_runs", Source: TableRuns, Clock: "created_at", ID: "run_id", StoredAt: "last_stored_at",
		// As the winner of record is chosen: the name decides by its text, not by the hash in initiator_key.
		Columns: []RollupColumn{
			{Name: "state", SQL: "tupleElement(record, 'state')"},
			{Name: "agent_id", SQL: "tupleElement(record, 'agent_id')"},
			{Name: "initiator", SQL: initiator, InRollup: fmt.Sprintf("bitShiftRight(initiator_key, %d)", InitiatorKeyShift)},
			{Name: "initiator_name", SQL: initiatorName},
		},
		Records: "runs",
		Sums: map[string]string{
			"runs":      agentRuns(""),
			"completed": agentRuns(fmt.Sprintf("= %d", StatusCompleted.Bits())),
			"failed":    agentRuns(fmt.Sprintf("= %d", StatusFailed.Bits())),
			"cancelled": agentRuns(fmt.Sprintf("= %d", StatusCancelled.Bits())),
			"active": agentRuns(fmt.Sprintf("BETWEEN %d AND %d", // ActiveStatuses
				StatusPending.Bits(), StatusPaused.Bits())),
		},
		Keys: []RollupKey{
			{Name: "agent_id", SQL: "agent_id", Columns: 2},
			{Name: "user_type", SQL: "toUInt8(" + InitiatorTypeSQL + ")", Columns: 1},
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
		Table: "rollup_attributions", Source: TableAttributions, Clock: "occurred_at", ID: "attribution_id",
		StoredAt: "first_stored_at",
		First:    "inverted_timestamp",
		Columns: []RollupColumn{
			{Name: "activity_type", SQL: "activity_type"},
			{Name: "agent_id", SQL: "agent_id"},
		},
		Records: "records",
		Sums: map[string]string{
			"records":    "sign",
			"interacted": "if(activity_type = 'interacted', sign, 0)",
		},
		Keys: []RollupKey{
			{Name: "agent_id", SQL: "agent_id", Columns: 2},
			{Name: "activity_type", SQL: "activity_type", Columns: 1},
		},
		Projections: []Projection{
			{Name: "by_quarter", Time: ColumnQuarter, SpanMillis: QuarterMillis},
			{Name: "by_agent", Time: "hour", SpanMillis: hourMillis, Keys: []string{"agent_id"}},
		},
	},
}

// agentRuns is the sign of an agent run whose status satisfies a condition, and 0 of any other run; empty for any
// status.
func agentRuns(condition string) string {
	sql := "if(" + AgentRunSQL
	if condition != "" {
		sql += " AND " + StatusBits("state") + " " + condition
	}
	return sql + ", sign, 0)"
}

// RollupOf returns the rollup table of a source, or nil.
func RollupOf(source string) *RollupTable {
	for _, t := range RollupTables {
		if t.Source == source {
			return t
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

// Counts is the condition over a row of the source that no other clock of the record counts instead. Of runs every row
// counts: those of superseded clocks say so themselves.
func (t *RollupTable) Counts(read sql.Reader) string { return t.counts(read, "organization_id") }

// CountsOfOrganization is Counts over a row of the organization in the parameter organization.
func (t *RollupTable) CountsOfOrganization() string { return t.counts(sql.Table) }

func (t *RollupTable) counts(read sql.Reader, key ...string) string {
	if t.First == "" {
		return "true"
	}
	return sql.NotIn(SupersededAttributions(read, append(slices.Clone(key), "clock", "id")),
		append(key, t.Clock, t.ID)...)
}

// RecordKey are the columns that name a record.
func (t *RollupTable) RecordKey() []string { return []string{"organization_id", t.Clock, t.ID} }

// Partition is SQL of the partition key of a rollup table: the year and its quarter.
func (t *RollupTable) Partition() string {
	return "toYear(" + t.Clock + ") * 10 + toQuarter(" + t.Clock + ")"
}

// The kinds of entries in the rollup log. Of each kind the greatest number counts, and of several commits with one
// number the one that goes least far.
const (
	LogBegin  = "begin"  // somebody claims the right to write to the rollup; the value is a random name
	LogCommit = "commit" // everything up to the watermark is in the rollup
	LogLease  = "lease"  // a program of the first release changes rows: the rollup may be neither read nor refreshed
	LogDamage = "damage" // queries of an organization may not use the rollup of a source, until the entry is deleted
)

// LogNobody is the name in the entry begin of a claim that has ended without a commit.
const LogNobody = math.MaxInt64

// LogAnnounced is the value in an entry of a damage that a change made on purpose, as a purge or a move does; 0 where a
// comparison found it.
const LogAnnounced = 1

// LogChangedMessage is in the exception of a statement whose condition RollupUnchanged is false.
const LogChangedMessage = "the rollup log changed"

// RollupUnchanged is the condition that the log has no entry newer than some numbers, each SQL of an integer: of leases
// and damages, and where begin is not empty of refresh batches too. If there is one, the statement fails with
// LogChangedMessage before it reads rows.
//
// Such an entry is written before any row of the rollup is changed. ClickHouse takes the snapshot of a table when it
// analyses where the statement names it, FROM first. So in a WHERE after a FROM that reads the rollup, the condition
// says that the rollup was unchanged in the statement's snapshot (TestLogIsReadAfterTheRollup).
func RollupUnchanged(lease, damage, begin string) string {
	const number = "tupleElement(latest, 'number')"
	newer := "kind = '" + LogLease + "' AND " + number + " > " + lease +
		" OR kind = '" + LogDamage + "' AND " + number + " > " + damage
	if begin != "" {
		newer += " OR kind = '" + LogBegin + "' AND " + number + " > " + begin
	}
	return "1 NOT IN" + sql.In(sql.Select{
		Columns: []string{"throwIf(" + newer + ", '" + LogChangedMessage + "')"},
		From:    sql.AllOrganizations("the log is the store's")(TableRollupLog),
	})
}
