package query

import (
	"fmt"
	"slices"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// Narrow returns the query that is answered where a caller with a restriction asks q: with a filter for each part of
// the restriction, and bound to it by Canonical, so that whatever is cached, shared or signed for one restriction is
// not for another. The error is an *Error with RestrictedKey for what the restriction does not permit; it follows from
// the question and the restriction alone, never from a row. now is when the caller asks.
func (q Query) Narrow(r *schema.Restriction, now time.Time) (Query, error) {
	// That many whole days in UTC before today, and today.
	oldest := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -r.Days)
	if r.Days > 0 && q.Range.StartUTC.Before(oldest) {
		return Query{}, restricted("range.start", fmt.Sprintf("the key reads %d days", r.Days))
	}
	q.MinPeople = r.MinPeople
	if q.MinPeople > 0 {
		if err := q.noPerson(); err != nil {
			return Query{}, err
		}
	}
	q.Filters = slices.Clone(q.Filters)
	for _, part := range []struct {
		dimension string
		values    []string
	}{
		{catalog.RestrictedAgent, r.Agents}, {catalog.RestrictedPerson, r.People}, {catalog.RestrictedDomain, r.Domains},
	} {
		if len(part.values) > 0 {
			q.Filters = append(q.Filters,
				Filter{Dimension: q.Model.Restricting(part.dimension), Op: "in", Values: part.values, OfKey: true})
		}
	}
	q.canonical = slices.Concat(q.canonical, []byte("\n"+r.Rows()))
	return q, nil
}

// noPerson refuses a query that names people, in a dimension or in a filter: a group of one person shows the person,
// and a filter chooses who is in a group.
func (q *Query) noPerson() error {
	named := slices.Clone(q.Dimensions)
	for _, f := range q.Filters {
		named = append(named, f.Dimension)
	}
	for _, d := range named {
		if d.Kind == catalog.Identifier {
			return restricted(d.Name, "the key shows no person")
		}
	}
	return nil
}

func restricted(param, reason string) error {
	return &Error{Code: RestrictedKey, Param: param, Reason: reason}
}
