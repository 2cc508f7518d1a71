// Package catalog is the published set of models, metrics and dimensions (spec 2.1 to 2.8). Each member is one literal
// that holds its public description and its SQL binding, so that what is promised and what is computed are read
// together. The package is pure; olap/compile turns bindings into statements.
package catalog

import "github.com/runlens/runlens/schema"

// Version is the version of the published member set (spec 2.1). It changes with every change of a
// member that a caller could notice.
const Version = "1.0"

// A Model is a published model (spec 2.2) and its table.
type Model struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Grain       string      `json:"grain"`
	EventClock  string      `json:"eventClock"`
	Metrics     []Metric    `json:"metrics"`
	Dimensions  []Dimension `json:"dimensions"`

	Source Source `json:"-"`

	// Of keys that see less than the organization (query.Narrow), and not published: what else restrictions filter by, and
	// how many different people are behind the rows of a group.
	Unpublished []Dimension `json:"-"`
	People      Metric      `json:"-"`
}

// The dimensions by which the parts of a restriction filter; every model has all of them.
const (
	RestrictedAgent  = "agent_id"
	RestrictedPerson = "user_identifier"
	RestrictedDomain = "user_domain"
)

// Restricting returns the dimension called name by which a restriction filters. It is one of the names above.
func (m *Model) Restricting(name string) *Dimension {
	if d := m.Dimension(name); d != nil {
		return d
	}
	if d := find(m.Unpublished, func(d *Dimension) bool { return d.Name == name }); d != nil {
		return d
	}
	panic("catalog: no dimension to restrict " + m.Name + " by: " + name) // a test has it that there is one
}

// A Source is a model's binding to its table.
type Source struct {
	Table       string              // from package schema
	ClockColumn string              // the event clock, in the sorting key directly after organization_id
	Predicate   string              // SQL over columns that every row of the model satisfies; empty for none
	Mutable     bool                // a record has versions, of which only the newest counts
	Rollup      *schema.RollupTable // of the table
	Fields      []Field
}

// A Field is an SQL expression over one row, computed once and then named by metrics and
// dimensions as f_<Name>.
type Field struct {
	Name string
	SQL  string
	// FromRun says that the value comes from the current state of the attributed run, which the
	// compiler joins, and not from the model's own table. SQL is then over run_state.
	FromRun bool
}

// A MetricKind says what a metric's values are.
type MetricKind uint8

const (
	Count MetricKind = iota // a whole number, never null
	Ratio                   // a fraction from 0 to 1 (inclusive), null where its denominator is zero
)

// A Metric (spec 2.3) is either an aggregate over rows or derived from other metrics of its model.
type Metric struct {
	Name        string      `json:"name"`
	Kind        MetricKind  `json:"type"`
	Description string      `json:"description"`
	Additive    bool        `json:"additive"`
	Deprecated  *Deprecated `json:"deprecated"`

	// Aggregate is SQL over the fields named in Fields. Empty for a derived metric.
	Aggregate string   `json:"-"`
	Fields    []string `json:"-"`
	// Derived is SQL over the metrics named in From, each as m_<name>.
	Derived string   `json:"-"`
	From    []string `json:"-"`
	// Pairs says that Aggregate counts the different pairs (the field pair) of the rows that satisfy
	// When, SQL over the fields named in Fields; all rows where When is empty.
	Pairs bool   `json:"-"`
	When  string `json:"-"`
	// CountsRows says that a repeated row would be counted twice, so that versions must be
	// collapsed first. Distinct counts of immutable rows do not need that.
	CountsRows bool `json:"-"`
	// RollupSum names the sum of the model's schema.RollupTable whose total the metric is; empty for none.
	RollupSum string `json:"-"`
	// CountsInitiators says that the metric counts the different initiators of records in the rollup.
	CountsInitiators bool `json:"-"`
}

// A DimensionKind says how a dimension is grouped, filtered and shown.
type DimensionKind uint8

const (
	Text       DimensionKind = iota // a string, compared byte by byte
	AgentID                         // a UUID shown as lower-case text; filters also take a slug
	Identifier                      // a person's identifier; filters are normalized like records (contract 3)
	Day                             // a local calendar day in the requested timezone
)

// A Dimension (spec 2.4) groups and filters rows.
type Dimension struct {
	Name        string        `json:"name"`
	Kind        DimensionKind `json:"type"`
	Description string        `json:"description"`
	Companions  []Companion   `json:"companions"`
	Deprecated  *Deprecated   `json:"deprecated"`

	// Field is the field to group by. Empty for Day, which is computed from the event clock.
	Field string `json:"-"`
	// Show is SQL that turns the grouped value, written as ?, into Nullable(String) or String.
	// Empty where the value is shown as it is.
	Show string `json:"-"`
}

// A Companion (spec 2.5) is a column that comes with its dimension and is no member itself (contract 4.19).
type Companion struct {
	Name        string        `json:"name"`
	Kind        DimensionKind `json:"type"` // Text
	Description string        `json:"description"`

	// Field is the field whose greatest non-null value in the group is shown. Empty for the
	// agent's current name, which is joined by agent.
	Field string `json:"-"`
}

// Deprecated marks a member that stays queryable but should no longer be used (spec 2.6).
type Deprecated struct {
	Since string `json:"since"`
	Note  string `json:"note"`
}

// Models are the published models in the order of the catalog response.
var Models = []*Model{&agentRuns, &agentUserActivity}

// Find returns the model called name, or nil.
func Find(name string) *Model {
	for _, m := range Models {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Metric returns the metric called name, or nil.
func (m *Model) Metric(name string) *Metric {
	return find(m.Metrics, func(metric *Metric) bool { return metric.Name == name })
}

// Dimension returns the dimension called name, or nil.
func (m *Model) Dimension(name string) *Dimension {
	return find(m.Dimensions, func(d *Dimension) bool { return d.Name == name })
}

// Field returns the field called name, or nil.
func (s *Source) Field(name string) *Field {
	return find(s.Fields, func(f *Field) bool { return f.Name == name })
}

// find returns the first element of which something is true, or nil.
func find[E any](elements []E, is func(*E) bool) *E {
	for i := range elements {
		if is(&elements[i]) {
			return &elements[i]
		}
	}
	return nil
}
