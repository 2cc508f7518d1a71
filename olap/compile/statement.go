// Package compile prints a plan as one ClickHouse statement. It is pure and chooses nothing: that is olap/plan's.
// Callers' texts travel as server-side parameters; nothing that a caller wrote ever becomes part of the SQL text.
//
// A statement (statement.go) selects from groups of base rows (rows.go, filters.go; states.go with the states of runs,
// pairs.go for totals of pairs) or of rows of the rollup (rollup.go, initiators.go).
package compile

import (
	"fmt"
	"slices"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Statement is SQL with its server-side parameters.
type Statement struct {
	SQL     string
	Params  []Param
	Columns []Column
	// Order holds, for each term of the query's completed order, the position of its column. For
	// a query that pages, these columns of the last row say where the next page begins.
	Order []int
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
	Member string // the catalog member; a companion has its dimension's
	// Kind is also in which form ClickHouse returns the values: Text as String or Nullable(String), of low cardinality or
	// not; Day as Int64, from FirstDay; Count as UInt64; Ratio as Nullable(Float64).
	Kind value.Kind
}

// FirstDay is the day, counted from 1970-01-01, from which statements count days: before all that can be asked for, so
// that no division meets a negative number, which it would round up.
const FirstDay = -1_000_000

// An Input is everything that a statement depends on.
type Input struct {
	plan.Plan
	Organization schema.OrganizationID // required: every table is read for this organization only
	After        []value.Value         // the row to continue after, in the completed order; nil for a first page
}

// Compile returns the statement of the input's plan. It selects one row more than the query's limit, which shows
// whether a further row exists (contract 4.3).
func Compile(in Input) Statement {
	w := &printer{Input: in}
	w.param("organization", string(w.Organization))
	columns, selected := w.columns()
	statement := Statement{
		Columns: columns, OwnClock: w.AsOf.IsZero(), OneThread: w.OneThread,
	}
	if w.Projection != nil {
		statement.Projection = w.Projection.Name
	}
	if statement.OwnClock {
		selected = append(selected, ownClock)
	}
	s := w.layers(selected)
	if !w.Query.Totals() {
		for _, term := range w.Order {
			position := w.position(term)
			statement.Order = append(statement.Order, position)
			s.Order = append(s.Order, fmt.Sprintf("c%d %s NULLS LAST", position, direction(term.Descending)))
		}
		s.Limit = number(int64(w.Query.Limit) + 1)
	}
	statement.SQL, statement.Params, statement.DeltaColumns = s.String(), w.params, w.deltaColumns
	return statement
}

// A printer collects a statement's text and parameters.
type printer struct {
	Input
	params       []Param
	deltaColumns []string
	named        []string // queries, for the statement's WITH
}

// name has the statement name a query, so that it is printed once however often its rows are selected.
func (w *printer) name(name string, query fmt.Stringer) sql.From {
	if as := name + " AS" + sql.In(query); !slices.Contains(w.named, as) {
		w.named = append(w.named, as)
	}
	return sql.Sent(name)
}

// fromRollup reports whether rows come from the rollup.
func (w *printer) fromRollup() bool { return w.Delta != plan.NoRollup }

// layers is the statement without its order. Every layer of subqueries costs ClickHouse a tenth of a small query, so
// that groups of base rows are selected from the table itself, unless names of agents are to be joined to them.
func (w *printer) layers(selected []string) sql.Select {
	var groups sql.Select
	switch {
	case w.fromRollup():
		groups = w.rollupQuery()
	case w.PairGroups:
		groups = w.totalsOfPairs()
	default:
		groups = w.records()
		groups.Group, groups.Having = w.keys(), w.enoughPeople()
		if !w.AgentNames {
			groups.With, groups.Columns = slices.Concat(groups.With, w.aggregates()), selected
			return groups
		}
		groups.Columns = slices.Concat(w.keys(), w.aggregates())
	}
	s := sql.Select{With: w.named, Columns: selected, From: sql.Query(groups).As("g")}
	if w.AgentNames {
		s.Joins = []sql.Join{{
			Kind: "ANY LEFT", From: sql.Query(agentNames).As("a"), On: "ON a.a_agent_id = g.f_agent_id",
		}}
	}
	if w.fromRollup() {
		s.Where = []string{w.unchanged()}
	}
	return s
}

// agentNames are the current names of the organization's agents.
var agentNames = sql.Select{
	Columns: []string{"agent_id AS a_agent_id", "toNullable(tupleElement(latest, 'name')) AS a_agent_name"},
	From:    sql.Table(schema.TableAgents).Final(true),
}

// columns are the answer's columns and the SQL of each over the groups and the agents: every
// dimension, its companions after it, then the metrics (spec 2.14).
func (w *printer) columns() (columns []Column, selected []string) {
	add := func(c Column, sql string) {
		selected = append(selected, fmt.Sprintf("%s AS c%d", sql, len(columns)))
		columns = append(columns, c)
	}
	for _, d := range w.Query.Dimensions {
		if d.Kind == catalog.Day {
			add(Column{d.Name, d.Name, value.Day}, w.inBits64("f_day", "toInt64"))
		} else {
			add(Column{d.Name, d.Name, value.Text}, shown(d, "f_"+d.Field))
		}
		for _, c := range d.Companions {
			sql := "a_agent_name"
			if c.Field != "" {
				sql = "n_" + c.Name
			}
			add(Column{c.Name, d.Name, value.Text}, sql)
		}
	}
	for _, m := range w.Query.Metrics {
		column := Column{m.Name, m.Name, value.Count}
		switch {
		case m.Kind == catalog.Ratio:
			column.Kind = value.Ratio
			add(column, m.Derived)
		case m.Derived != "":
			add(column, "toUInt64("+m.Derived+")")
		default:
			add(column, w.inBits64("m_"+m.Name, "toUInt64"))
		}
	}
	return columns, selected
}

// inBits64 is a day or a count in the type of its column. That of base rows has it, and every function of a statement
// costs; sums of signs can be negative for ClickHouse, and the rollup's days are narrow to be grouped by.
func (w *printer) inBits64(sql, convert string) string {
	if w.fromRollup() {
		return convert + "(" + sql + ")"
	}
	return sql
}

// position is the column of an order term.
func (w *printer) position(term query.OrderTerm) int {
	position := 0
	for _, d := range w.Query.Dimensions {
		if d == term.Dimension {
			return position
		}
		position += 1 + len(d.Companions)
	}
	for _, m := range w.Query.Metrics {
		if m == term.Metric {
			return position
		}
		position++
	}
	panic("compile: an order term that is not selected") // query.Parse refuses it
}

func direction(descending bool) string {
	if descending {
		return "DESC"
	}
	return "ASC"
}
