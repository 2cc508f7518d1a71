// Package compile turns a valid query into one ClickHouse statement. It is pure: plan.go decides
// what is needed, sql.go prints it. Callers' texts travel as server-side parameters; nothing that
// a caller wrote ever becomes part of the SQL text.
package compile

import (
	"slices"
	"time"

	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// A Statement is SQL with its server-side parameters.
type Statement struct {
	SQL     string
	Params  []Param
	Columns []Column
	// Order holds, for each term of the query's completed order, the position of its column. For
	// a query that pages, these columns of the last row say where the next page begins.
	Order []int
	// OneSnapshot says that the statement is only right when all its reads of a table see the same rows.
	OneSnapshot bool
	// Projection is the projection that the statement is made for; empty for none. ClickHouse would find it, but weighs all others first.
	Projection string
	// Reads is where the statement finds the records, but for what changed since a refresh.
	Reads Reads
	// OneThread says that the statement reads so few rows that a second thread costs more than it helps.
	OneThread bool
	// ChangeColumns are the columns that the table of changes needs that comes with the statement; empty where none does.
	ChangeColumns []string
	// OwnClock means that the statement sets its boundary itself and returns it, behind Columns,
	// as an Int64 of milliseconds since 1970, the same in every row.
	OwnClock bool
}

// Reads is what a statement reads.
type Reads uint8

const (
	ReadsBase             Reads = iota // rows of the base tables
	ReadsRollupRows                    // rows of the rollup
	ReadsRollupAggregates              // a projection of the rollup, and its rows at the range's edges
)

// A Param is the value of the parameter {Name:…} of a statement: string, int64, []string or []int64.
type Param struct {
	Name  string
	Value any
}

// A Column describes one value of every row (spec 2.14).
type Column struct {
	Name   string
	Type   string // string, number or date
	Member string // the catalog member; a companion has its dimension's
	Kind   Kind
}

// A Kind is the form in which ClickHouse returns a column.
type Kind uint8

const (
	Text  Kind = iota // Nullable(String)
	Day               // Int64: days since 1970-01-01
	Count             // UInt64
	Ratio             // Nullable(Float64)
)

// An Input is everything a statement depends on.
type Input struct {
	Organization schema.OrganizationID // required: every table is read for this organization only
	Query        query.Query
	Large        bool // the organization has so many records of the model that it pays to divide a statement; no answer depends on it
	// Conflicts says that records of the model were stored with several contents or under several clocks, so that copies are
	// collapsed whatever is counted. Runs need no telling: their rows are always collapsed.
	Conflicts bool
	AsOf      time.Time // rows first stored after it are left out (contract 4.1); zero for the statement's own clock
	// Watermark is the boundary of the rollup (schema/DESIGN.md): every record none of whose
	// rows was stored after it is refreshed. Zero for not to use them.
	Watermark time.Time
	// Changes tells where the records are of which a row was stored after Watermark.
	Changes DeltaFrom
	// OutsideSince says that the table schema.TableRunsOutside comes with the statement, with the runs that are not near (RunsOutside) of all
	// records that were stored until then; zero where it does not.
	OutsideSince time.Time
	// MergedParts are names of parts of the runs in none of which a run has two rows, nor in two of them; of any that are not there (any more), the
	// runs are read like those of all other parts, which takes longer. None for not to tell parts apart.
	MergedParts []string
	After       []cursor.Value // the row to continue behind, in the completed order; nil for a first page
}

// A DeltaFrom is where a statement finds the records that changed since they were refreshed.
type DeltaFrom uint8

const (
	DeltaInline DeltaFrom = iota // in the store, where it looks for them, and for shared initiator keys
	DeltaCached                  // in the table schema.TableDelta that comes with the statement (schema.RollupTable.RollupDelta, with schema.ColumnAsked)
	DeltaNone                    // nowhere: nothing was stored
)

// SharedKeysMessage is in the exception of a statement that looks for changes itself (DeltaInline) and finds that an
// initiator key which the answer may rest on stands for two texts.
const SharedKeysMessage = "initiator keys are shared"

// Compile returns the statement that answers the input. It asks for one row more than the query's
// limit, which tells whether a further row exists (contract 4.3).
func Compile(in Input) Statement {
	return plan(in).statement()
}

// JoinsRunWindow reports whether the query needs the states of runs, of which those around the range are read and others looked for.
func JoinsRunWindow(q query.Query) bool {
	w := &printer{planned: plan(Input{Query: q})}
	return len(w.joinRun) > 0 && !w.long()
}

// ByInitiatorKey reports whether the query, answered by adding up records in the rollup, rests on initiator keys.
func ByInitiatorKey(q query.Query) bool {
	return slices.Contains(plan(Input{Query: q, Watermark: time.UnixMilli(1)}).rollupKeys, keyInitiatorKey)
}

// FitsRollup reports whether the query can be answered by adding up records in the rollup.
func FitsRollup(q query.Query) bool {
	return plan(Input{Query: q, Watermark: time.UnixMilli(1)}).rollup != nil
}
