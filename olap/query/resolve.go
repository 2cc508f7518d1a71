package query

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/schema"
)

// resolve gives a request's words their meaning: members, dates, zone, and the rules that join them.
func resolve(r request) (Query, error) {
	model := catalog.Find(r.Model)
	if model == nil {
		return Query{}, invalid("model", "is no model")
	}
	if err := knownMembers(model, r); err != nil {
		return Query{}, err
	}
	q := Query{Model: model, Limit: r.Limit, Cursor: r.cursor}
	for i, name := range r.Metrics {
		metric := model.Metric(name)
		if metric == nil {
			return Query{}, invalid(fmt.Sprintf("metrics[%d]", i), "is a dimension")
		}
		q.Metrics = append(q.Metrics, metric)
	}
	for i, name := range r.Dimensions {
		dimension := model.Dimension(name)
		if dimension == nil {
			return Query{}, invalid(fmt.Sprintf("dimensions[%d]", i), "is a metric")
		}
		q.Dimensions = append(q.Dimensions, dimension)
	}
	for i, shape := range r.Filters {
		filter, err := resolveFilter(model, shape, fmt.Sprintf("filters[%d]", i))
		if err != nil {
			return Query{}, err
		}
		q.Filters = append(q.Filters, filter)
	}
	var err error
	if q.Range, err = resolveRange(r.Range); err != nil {
		return Query{}, err
	}
	if q.Order, err = q.resolveOrder(r.Order); err != nil {
		return Query{}, err
	}
	if q.Cursor != "" && !q.Pages() {
		return Query{}, &Error{Code: InvalidCursor, Param: "cursor",
			Reason: "totals and metric-ordered queries have one page"}
	}
	q.canonical, err = json.Marshal(r, json.Deterministic(true))
	return q, err
}

// knownMembers refuses the first name that the model's catalog does not have, wherever it is (contract 4.4).
func knownMembers(model *catalog.Model, r request) error {
	names := append(append([]string(nil), r.Metrics...), r.Dimensions...)
	for _, filter := range r.Filters {
		names = append(names, filter.Member)
	}
	for _, term := range r.Order {
		names = append(names, term.Member)
	}
	for _, name := range names {
		if model.Metric(name) == nil && model.Dimension(name) == nil {
			return &Error{Code: UnknownMember, Param: name, Reason: "is not in the catalog of " + model.Name}
		}
	}
	return nil
}

func resolveFilter(model *catalog.Model, shape filterShape, place string) (Filter, error) {
	dimension := model.Dimension(shape.Member)
	if dimension == nil {
		return Filter{}, invalid(place+".member", "is a metric, and filters apply to dimensions only")
	}
	filter := Filter{Dimension: dimension, Op: shape.Op}
	for i, value := range shape.Values {
		switch dimension.Kind {
		case catalog.Day:
			day, ok := daterange.ParseDate(value)
			if !ok {
				return Filter{}, invalid(valuePlace(shape, place, i), "is no calendar date of the form YYYY-MM-DD")
			}
			filter.Days = append(filter.Days, day)
		case catalog.Identifier:
			filter.Values = append(filter.Values, schema.NormalizeIdentifier(value))
		default:
			filter.Values = append(filter.Values, value)
		}
	}
	return filter, nil
}

func valuePlace(shape filterShape, place string, i int) string {
	if shape.Op == "eq" {
		return place + ".value"
	}
	return fmt.Sprintf("%s.values[%d]", place, i)
}

func resolveRange(shape rangeShape) (daterange.Range, error) {
	r, err := daterange.Parse(shape.Start, shape.End, shape.Timezone)
	var fault *daterange.Error
	switch {
	case !errors.As(err, &fault):
		return r, err
	case fault == daterange.ErrTooLarge:
		return r, &Error{Code: RangeTooLarge, Param: fault.Param, Reason: fault.Error()}
	}
	return r, invalid(fault.Param, fault.Error())
}

func (q *Query) resolveOrder(shapes []orderShape) ([]OrderTerm, error) {
	if q.Totals() && len(shapes) > 0 {
		return nil, invalid("order", "a totals query has nothing to order")
	}
	var terms []OrderTerm
	for i, shape := range shapes {
		term := OrderTerm{Descending: shape.Descending}
		for _, metric := range q.Metrics {
			if metric.Name == shape.Member {
				term.Metric = metric
			}
		}
		for _, dimension := range q.Dimensions {
			if dimension.Name == shape.Member {
				term.Dimension = dimension
			}
		}
		if term.Metric == nil && term.Dimension == nil {
			return nil, invalid(fmt.Sprintf("order[%d].member", i), "is not selected")
		}
		terms = append(terms, term)
	}
	return terms, nil
}
