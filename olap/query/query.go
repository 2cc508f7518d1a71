// Package query turns the body of a query request into a valid Query: spec 2.10 to 2.13 and
// contract 4.4 to 4.10. It is pure.
package query

import (
	"slices"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
)

// Bounds of spec section 8, all inclusive. Lengths count Unicode code points (contract 4.10).
const (
	MaxMetrics      = 16
	MaxDimensions   = 8
	MaxFilters      = 8
	MaxFilterValues = 50
	MaxOrderTerms   = 8
	MaxNameLength   = 64
	MaxValueLength  = 200
	MaxCursorLength = 2048
	MaxLimit        = 500
	DefaultLimit    = 100
)

// A Query is a request that keeps every rule of the grammar and names only members that exist.
type Query struct {
	Model      *catalog.Model
	Metrics    []*catalog.Metric
	Dimensions []*catalog.Dimension // empty for a totals query
	Filters    []Filter
	Range      daterange.Range
	Order      []OrderTerm // as requested; see Completed
	Limit      int
	Cursor     string // empty for a first page
	// MinPeople is how many different people a group has to have to be in the answer; 0 for any number. See Narrow.
	MinPeople int

	canonical []byte
}

// A Filter keeps the rows whose dimension has any of the values. Several filters all apply (contract 4.7).
type Filter struct {
	Dimension *catalog.Dimension
	Op        string // as requested: eq or in
	// Values are as requested, but identifiers are normalized (contract 3). Empty for a day.
	Values []string
	// Days are the values of a day filter.
	Days []daterange.Date
	// OfKey says that the filter is part of a key's restriction, in which an agent is its id, whoever has that as a slug.
	OfKey bool
}

// An OrderTerm orders rows by a selected metric or a selected dimension: exactly one of the two is set.
type OrderTerm struct {
	Metric     *catalog.Metric
	Dimension  *catalog.Dimension
	Descending bool
}

// Totals reports whether the query has no dimensions and so answers exactly one row (spec 4.2 rule 2).
func (q *Query) Totals() bool { return len(q.Dimensions) == 0 }

// Pages reports whether the answer may continue through cursors: a grouped query that is ordered
// by dimensions only (spec 4.2 rules 4 and 5).
func (q *Query) Pages() bool {
	return !q.Totals() && !slices.ContainsFunc(q.Order, func(term OrderTerm) bool { return term.Metric != nil })
}

// Completed is the total order of the answer: the requested terms, then the remaining dimensions
// in the order selected, ascending (contract 4.2).
func (q *Query) Completed() []OrderTerm {
	terms := slices.Clone(q.Order)
	for _, dimension := range q.Dimensions {
		ordered := func(term OrderTerm) bool { return term.Dimension == dimension }
		if !slices.ContainsFunc(q.Order, ordered) {
			terms = append(terms, OrderTerm{Dimension: dimension})
		}
	}
	return terms
}

// Canonical is the request without its cursor in one spelling: requests that differ in white space,
// key order or spelled-out defaults have the same one (contract 4.17). A narrowed query has its restriction on
// a further line.
func (q *Query) Canonical() []byte { return q.canonical }
