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
	if w.Projection != nil {
		statement.Projection, statement.OneThread = w.Projection.Name, len(w.Projection.Keys) == 0
	}
	head := "SELECT\n    "
	if statement.OwnClock {
		head = ownClock + head
		selected = append(selected, "as_of_ms")
	}
	sql := head + strings.Join(selected, ",\n    ") +
		"\nFROM\n(\n" + indent(w.grouped()) + "\n) AS g"
	if w.AgentNames {
		sql += "\nANY LEFT JOIN\n(\n" + indent(agentNames()) + "\n) AS a ON a.a_agent_id = g.f_agent_id"
	}
	if w.fromRollup() {
		sql += "\nWHERE " + w.unchanged()
	}
	if !w.Query.Totals() {
		var terms []string
		for _, term := range w.Order {
			position := w.position(term)
			statement.Order = append(statement.Order, position)
			terms = append(terms, fmt.Sprintf("c%d %s NULLS LAST", position, direction(term.Descending)))
		}
		w.param("limit", int64(w.Query.Limit)+1)
		sql += "\nORDER BY " + strings.Join(terms, ", ") + "\nLIMIT {limit:Int64}"
	}
	statement.SQL, statement.Params, statement.DeltaColumns = sql, w.params, w.deltaColumns
	return statement
}

// columns are the answer's columns and the SQL of each over the groups g and the agents a: every
// dimension, its companions after it, then the metrics (spec 2.14).
func (w *printer) columns() (columns []Column, selected []string) {
	add := func(c Column, sql string) {
		selected = append(selected, fmt.Sprintf("%s AS c%d", sql, len(columns)))
		columns = append(columns, c)
	}
	for _, d := range w.Query.Dimensions {
		if d.Kind == catalog.Day {
			add(Column{d.Name, catalog.TypeDate, d.Name, Day}, "toInt64(g.f_day)")
		} else {
			add(Column{d.Name, catalog.TypeString, d.Name, Text},
				fmt.Sprintf("CAST(%s, 'Nullable(String)')", shown(d, "g.f_"+d.Field)))
		}
		for _, c := range d.Companions {
			sql := "a.a_agent_name"
			if c.Field != "" {
				sql = "CAST(g.n_" + c.Name + ", 'Nullable(String)')"
			}
			add(Column{c.Name, catalog.TypeString, d.Name, Text}, sql)
		}
	}
	for _, m := range w.Query.Metrics {
		column := Column{m.Name, catalog.TypeNumber, m.Name, Count}
		sql := "m_" + m.Name
		if m.Derived != "" {
			sql = m.Derived
		}
		if m.Kind == catalog.Ratio {
			column.Kind = Ratio
			add(column, "CAST("+sql+", 'Nullable(Float64)')")
		} else {
			add(column, "toUInt64("+sql+")")
		}
	}
	return columns, selected
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
	keys := w.keys()
	selected := slices.Clone(keys)
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// The group without an identifier has no name either (contract 4.15).
				selected = append(selected, fmt.Sprintf("if(isNull(%s), NULL, max(f_%s)) AS n_%s", keyOf(d), c.Field, c.Name))
			}
		}
	}
	for _, m := range w.Aggregates {
		selected = append(selected, m.Aggregate+" AS m_"+m.Name)
	}
	sql := ""
	if len(w.RunFields) > 0 {
		var fields []string
		for _, f := range w.RunFields {
			fields = append(fields, ofRun(f, w.state()))
		}
		sql = "WITH\n    " + strings.Join(fields, ",\n    ") + "\n"
	}
	sql += "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM\n" + w.joined("")
	if len(keys) > 0 {
		sql += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	return sql
}

// joined is what follows FROM: the rows, with the states of their runs where those are needed; with AllVersions, once
// for every stored version. bucket is a further condition on the hash ? of a run, of the rows and of the runs; empty
// for none.
func (w *printer) joined(bucket string) string {
	rows := w.rows(bucket)
	sql := "(\n" + indent(rows) + "\n) AS r"
	if len(w.RunFields) == 0 {
		return sql
	}
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

// rows is the layer of single records: of this organization, in the range, known at asOf, kept by the filters, and
// after the cursor. bucket is a further condition on the hash ? of the run; empty for none.
func (w *printer) rows(bucket string) string {
	var selected []string
	for _, f := range w.Fields {
		selected = append(selected, f.SQL+" AS f_"+f.Name)
	}
	if w.Day {
		selected = append(selected, w.localDay(w.clockMillis())+" AS f_day")
	}
	if len(selected) == 0 {
		selected = []string{"1 AS f_row"}
	}
	final := ""
	if w.Final {
		final = " FINAL"
	}
	conditions := slices.Concat(w.inRange(), w.conditions())
	return "SELECT\n    " + strings.Join(selected, ",\n    ") +
		"\nFROM " + w.Source.Table + final +
		"\nWHERE " + strings.Join(conditions, "\n    AND ") + strings.Replace(bucket, "?", hashOf("run_id"), 1)
}

// agentNames are the current names of the organization's agents.
func agentNames() string {
	return "SELECT agent_id AS a_agent_id, CAST(tupleElement(latest, 'name'), 'Nullable(String)') AS a_agent_name" +
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
