// Package compile prints a plan as one ClickHouse statement. It is pure and chooses nothing: that is olap/plan's.
// Callers' texts travel as server-side parameters; nothing that a caller wrote ever becomes part of the SQL text.
package compile

import (
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/plan"
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
	// Projection is the projection that the statement is made for; empty for none. ClickHouse would find it, but weighs
	// all others first.
	Projection string
	// OneThread says that the statement reads so few rows that a second thread costs more than it helps.
	OneThread bool
	// DeltaColumns are the columns that the statement needs of schema.TableDelta; empty where none is sent.
	DeltaColumns []string
	// OwnClock means that the statement sets its boundary itself and returns it, after Columns, as an Int64 of
	// milliseconds since 1970: the greatest of all rows.
	OwnClock bool
}

// A Param is the value of the parameter {Name:…} of a statement: string, []string or []int64.
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
	Text  Kind = iota // String or Nullable(String), of low cardinality or not
	Day               // Int64: days since FirstDay
	Count             // UInt64
	Ratio             // Nullable(Float64)
)

// FirstDay is the day, counted from 1970-01-01, from which statements count days: before all that can be asked for, so
// that no division meets a negative number, which it would round up.
const FirstDay = -1_000_000

// An Input is everything that a statement depends on.
type Input struct {
	plan.Plan
	Organization schema.OrganizationID // required: every table is read for this organization only
	After        []cursor.Value        // the row to continue after, in the completed order; nil for a first page
}

// SharedKeysMessage is in the exception of a statement with an inline delta that finds that an initiator key which the
// answer may depend on represents two texts.
const SharedKeysMessage = "initiator keys are shared"

// Compile returns the statement of the input's plan. It selects one row more than the query's limit, which shows
// whether a further row exists (contract 4.3).
func Compile(in Input) Statement {
	w := &printer{Input: in}
	return w.statement()
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
