// Package sql prints the SELECT statements of the store. A table is read through Table, which attaches the
// organization, or through AllOrganizations, which says why none is: in the packages of TestNobodyElseReadsTables
// nothing else writes FROM. It knows no table, and imports nothing internal.
package sql

import (
	"fmt"
	"slices"
	"strings"
)

// OfOrganization is the condition that a row is of the organization in the parameter organization. Every statement that
// answers a query reads every table with it.
const OfOrganization = "organization_id = {organization:String}"

// A Reader is how tables are read: of one organization or of all of them.
type Reader func(table string) From

// A From is what rows are read from. The zero From is nothing: the statement has one row.
type From struct {
	text  string
	rows  []string // conditions that belong to it
	final bool
	alias string
}

// Table is a table's rows of the organization in the parameter organization. It is a Reader.
func Table(name string) From { return From{text: " " + name, rows: []string{OfOrganization}} }

// AllOrganizations reads the rows of whatever organization. why says for whom; nothing is printed of it.
func AllOrganizations(why string) Reader {
	if why == "" {
		panic("sql: rows of all organizations are read, and nobody says why")
	}
	return func(name string) From { return From{text: " " + name} }
}

// Sent is a table that comes with the statement: an external one, or one that its WITH names.
func Sent(name string) From { return From{text: " " + name} }

// Query is the rows of a Select or a Union.
func Query(q fmt.Stringer) From { return From{text: In(q)} }

// As gives it a name.
func (f From) As(alias string) From {
	f.alias = alias
	return f
}

// Final is the table read with FINAL, if it is wanted.
func (f From) Final(wanted bool) From {
	f.final = wanted
	return f
}

func (f From) String() string {
	text := f.text
	if f.final {
		text += " FINAL"
	}
	if f.alias != "" {
		text += " AS " + f.alias
	}
	return text
}

// A Join joins rows of others.
type Join struct {
	Kind string // ANY LEFT, …
	From From   // of a Query, whose tables bring their conditions
	On   string // with USING or ON; empty for CROSS
}

// A Select is a query. Its parts are SQL; lists are joined, conditions by AND.
type Select struct {
	With     []string // expressions with their names
	Distinct bool
	Columns  []string
	From     From
	Array    string // of ARRAY JOIN
	Joins    []Join
	Where    []string // beside what From brings
	Group    []string
	Having   string
	Order    []string
	Limit    string
}

// String is the text of the query. Parts of more than one line are indented.
func (s Select) String() string {
	var b strings.Builder
	part := func(word, text string) {
		if text != "" {
			b.WriteString("\n" + word + text)
		}
	}
	if len(s.With) > 0 {
		b.WriteString("WITH" + list(s.With) + "\n")
	}
	b.WriteString("SELECT")
	if s.Distinct {
		b.WriteString(" DISTINCT")
	}
	b.WriteString(list(s.Columns))
	part("FROM", s.From.String())
	part("ARRAY JOIN ", s.Array)
	for _, j := range s.Joins {
		part(j.Kind+" JOIN", strings.TrimSuffix(j.From.String()+" "+j.On, " "))
	}
	part("WHERE ", All(append(slices.Clip(s.From.rows), s.Where...)...))
	part("GROUP BY ", strings.Join(s.Group, ", "))
	part("HAVING ", s.Having)
	part("ORDER BY ", strings.Join(s.Order, ", "))
	part("LIMIT ", s.Limit)
	return b.String()
}

// shortList is how many characters a list may have on the line that it begins on.
const shortList = 80

func list(items []string) string {
	line := " " + strings.Join(items, ", ")
	if len(line) <= shortList && !strings.Contains(line, "\n") {
		return line
	}
	return "\n" + indent(strings.Join(items, ",\n"))
}

// A Union is the rows of several queries.
type Union []Select

// String is the text of the queries.
func (u Union) String() string {
	texts := make([]string, len(u))
	for i, s := range u {
		texts[i] = s.String()
	}
	return strings.Join(texts, "\nUNION ALL\n")
}

// Text is a query that is SQL already.
type Text string

// String is its SQL.
func (t Text) String() string { return string(t) }

// All is the condition that all conditions are true, each of which binds at least as tightly as AND.
func All(conditions ...string) string {
	indented := make([]string, len(conditions))
	for i, condition := range conditions {
		indented[i] = strings.ReplaceAll(condition, "\n", "\n    ")
	}
	return strings.Join(indented, "\n    AND ")
}

// In is a query in brackets, to follow IN or NOT IN.
func In(q fmt.Stringer) string { return "\n(\n" + indent(q.String()) + "\n)" }

// NotIn is the condition that columns are not among the rows of a query. ClickHouse does not search the index for it,
// which would take longer than to read the rows, and excludes nothing.
func NotIn(q fmt.Stringer, columns ...string) string {
	list := strings.Join(columns, ", ")
	if len(columns) > 1 {
		list = "(" + list + ")"
	}
	return "identity(" + list + ") NOT IN" + In(q)
}

func indent(sql string) string { return "    " + strings.ReplaceAll(sql, "\n", "\n    ") }
