package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
)

// A printer collects a statement's text and parameters.
type printer struct {
	Input
	params       []Param
	deltaColumns []string
}

func (w *printer) statement() Statement {
	w.param("organization", string(w.Organization))
	columns, selected := w.columns()
	statement := Statement{
		Columns: columns, OwnClock: w.AsOf.IsZero(),
		OneSnapshot: w.Delta == plan.DeltaInline || len(w.MergedParts) > 0,
	}
	statement.OneThread = w.OneThread
	if w.Projection != nil {
		statement.Projection, statement.OneThread = w.Projection.Name, len(w.Projection.Keys) == 0
	}
	if statement.OwnClock {
		selected = append(selected, ownClock)
	}
	sql := w.layers(selected)
	if !w.Query.Totals() {
		var terms []string
		for _, term := range w.Order {
			position := w.position(term)
			statement.Order = append(statement.Order, position)
			terms = append(terms, fmt.Sprintf("c%d %s NULLS LAST", position, direction(term.Descending)))
		}
		sql += "\nORDER BY " + strings.Join(terms, ", ") + "\nLIMIT " + number(int64(w.Query.Limit)+1)
	}
	statement.SQL, statement.Params, statement.DeltaColumns = sql, w.params, w.deltaColumns
	return statement
}

// layers is the statement without its order. Every layer of subqueries costs ClickHouse a tenth of a small query, so
// that groups of base rows are selected from the table itself, unless names of agents are to be joined to them.
func (w *printer) layers(selected []string) string {
	if !w.fromRollup() && !w.PairGroups && !w.AgentNames {
		fields, from := w.from("")
		return selectFrom(slices.Concat(fields, w.aggregates()), selected, from) + groupBy(w.keys())
	}
	sql := selectFrom(nil, selected, "(\n"+indent(w.grouped())+"\n) AS g")
	if w.AgentNames {
		sql += "\nANY LEFT JOIN\n(\n" + indent(agentNames()) + "\n) AS a ON a.a_agent_id = g.f_agent_id"
	}
	if w.fromRollup() {
		sql += "\nWHERE " + w.unchanged()
	}
	return sql
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
			add(Column{d.Name, catalog.TypeDate, d.Name, Day}, w.inBits64("f_day", "toInt64"))
		} else {
			add(Column{d.Name, catalog.TypeString, d.Name, Text}, shown(d, "f_"+d.Field))
		}
		for _, c := range d.Companions {
			sql := "a_agent_name"
			if c.Field != "" {
				sql = "n_" + c.Name
			}
			add(Column{c.Name, catalog.TypeString, d.Name, Text}, sql)
		}
	}
	for _, m := range w.Query.Metrics {
		column := Column{m.Name, catalog.TypeNumber, m.Name, Count}
		switch {
		case m.Kind == catalog.Ratio:
			column.Kind = Ratio
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

// grouped is the layer of keys and aggregates.
func (w *printer) grouped() string {
	switch {
	case w.fromRollup():
		return w.rollupQuery()
	case w.PairGroups:
		return w.totalsOfPairs()
	}
	return w.groups()
}

// groups computes it from base rows.
func (w *printer) groups() string {
	fields, from := w.from("")
	keys := w.keys()
	return selectFrom(fields, slices.Concat(keys, w.aggregates()), from) + groupBy(keys)
}

// aggregates are what is computed of the rows of a group: companions as n_<name>, metrics as m_<name>, and for ownClock
// when its newest row was first stored.
func (w *printer) aggregates() (named []string) {
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// The group without an identifier has no name either (contract 4.15).
				named = append(named, fmt.Sprintf("if(isNull(%s), NULL, max(f_%s)) AS n_%s", keyOf(d), c.Field, c.Name))
			}
		}
	}
	for _, m := range w.Aggregates {
		named = append(named, m.Aggregate+" AS m_"+m.Name)
	}
	if w.AsOf.IsZero() {
		named = append(named, "max("+storedAt+") AS "+newestStored)
	}
	return named
}

// from is where single rows come from, with the SQL of their fields as f_<name>: the table, or the rows with the states
// of their runs where those are needed. bucket is as in joined.
func (w *printer) from(bucket string) (fields []string, from string) {
	if len(w.RunFields) == 0 {
		return w.fields(), w.table(bucket)
	}
	for _, f := range w.RunFields {
		fields = append(fields, ofRun(f, w.state()))
	}
	return fields, w.joined(bucket)
}

// joined are the rows with the states of their runs; with AllVersions, once for every stored version. bucket is a
// further condition on the hash ? of a run, of the rows and of the runs; empty for none.
func (w *printer) joined(bucket string) string {
	rows := w.rows(bucket)
	sql := "(\n" + indent(rows) + "\n) AS r"
	join := func(kind, states, name string) {
		sql += "\n" + kind + " JOIN\n(\n" + indent(states) + "\n) AS " + name + " USING (f_run_id)"
	}
	states := w.runStates(rows, bucket)
	if w.AllVersions {
		join("LEFT", states, "s")
		return sql
	}
	join("ANY LEFT", states, "s")
	if len(w.MergedParts) > 0 {
		join("ANY LEFT", w.newerStates(), "v")
	}
	return sql
}

// rows are single records. bucket is as in joined.
func (w *printer) rows(bucket string) string { return selectFrom(nil, w.fields(), w.table(bucket)) }

// fields are the fields of a row of the model's own table.
func (w *printer) fields() (named []string) {
	for _, f := range w.Fields {
		named = append(named, f.SQL+" AS f_"+f.Name)
	}
	if w.Day {
		named = append(named, w.localDay(w.clockMillis())+" AS f_day")
	}
	if w.AsOf.IsZero() {
		named = append(named, "first_stored_at AS "+storedAt)
	}
	return named
}

// table is the model's table with the conditions on its rows: of this organization, in the range, known at asOf, kept
// by the filters, and after the cursor. bucket is as in joined.
func (w *printer) table(bucket string) string {
	final := ""
	if w.Final {
		final = " FINAL"
	}
	conditions := slices.Concat(w.inRange(), w.conditions())
	return w.Source.Table + final +
		"\nWHERE " + strings.Join(conditions, "\n    AND ") + strings.Replace(bucket, "?", hashOf("run_id"), 1)
}

// agentNames are the current names of the organization's agents.
func agentNames() string {
	return "SELECT agent_id AS a_agent_id, toNullable(tupleElement(latest, 'name')) AS a_agent_name" +
		"\nFROM " + schema.TableAgents + " FINAL" +
		"\nWHERE " + schema.OfOrganization
}

// keys are what is grouped by.
func (w *printer) keys() (keys []string) {
	for _, d := range w.Query.Dimensions {
		keys = append(keys, keyOf(d))
	}
	return keys
}

func keyOf(d *catalog.Dimension) string {
	if d.Kind == catalog.Day {
		return "f_day"
	}
	return "f_" + d.Field
}

// shown is the SQL of a dimension's text over its key.
func shown(d *catalog.Dimension, key string) string {
	if d.Show == "" {
		return key
	}
	return strings.Replace(d.Show, "?", key, 1)
}

func direction(descending bool) string {
	if descending {
		return "DESC"
	}
	return "ASC"
}

func indent(sql string) string {
	return "    " + strings.ReplaceAll(sql, "\n", "\n    ")
}

// selectFrom is a query with the expressions that it gives a name; none for no WITH.
func selectFrom(named, selected []string, from string) string {
	sql := ""
	if len(named) > 0 {
		sql = "WITH\n    " + strings.Join(named, ",\n    ") + "\n"
	}
	if strings.HasPrefix(from, "(") {
		from = "\n" + from
	} else {
		from = " " + from
	}
	return sql + "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM" + from
}

// groupBy follows it; empty without keys.
func groupBy(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return "\nGROUP BY " + strings.Join(keys, ", ")
}
