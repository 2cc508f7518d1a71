package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// Missing says of the filters of a query that found nothing which values there are none of in its days, and what may
// have been meant. It asks one query for each filter, a further one for the values that it does not find, and one about
// the key before it says anything. It says nothing where one fails.
func Missing(ctx context.Context, c *client.Client, q client.Query) (hints []string) {
	if hints = missingValues(ctx, c, q); len(hints) == 0 {
		return nil
	}
	// A key that leaves out groups of few people shows no person, and what it does not show may be there.
	const person = "user_identifier"
	_, err := c.Query(ctx, client.Query{Model: q.Model, Metrics: q.Metrics[:1], Dimensions: []string{person},
		Range: q.Range, Limit: 1})
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Code == client.CodeRestrictedKey && refused.Reason == person:
		return []string{"the key leaves out groups of too few people, so there may be some"}
	case err != nil:
		return nil
	}
	return hints
}

// missingValues is Missing for a key that leaves out no group.
func missingValues(ctx context.Context, c *client.Client, q client.Query) (hints []string) {
	for _, f := range q.Filters {
		asked := client.Query{Model: q.Model, Metrics: q.Metrics[:1], Dimensions: []string{f.Member},
			Range: q.Range, Limit: client.MaxLimit}
		page, err := c.Query(ctx, asked)
		if err != nil {
			return hints
		}
		if len(page.Rows) == 0 {
			return []string{"nothing was counted in these days, whatever the filters"}
		}
		var of, values []string
		for _, value := range append(slices.Clone(f.Values), f.Value) {
			if hint := missing(page, f.Member, value); hint != "" {
				of, values = append(of, hint), append(values, value)
			}
		}
		if len(values) == 0 {
			continue
		}
		// A filter takes more than an answer has: slugs, and identifiers in any letter case.
		asked.Filters = []client.Filter{client.In(f.Member, values...)}
		if page, err = c.Query(ctx, asked); err != nil {
			return hints
		}
		if len(page.Rows) == 0 {
			hints = append(hints, of...)
		}
	}
	return hints
}

// missing is a hint about a value that a page of a dimension's values does not have; empty for one that it has, or may
// have further on.
func missing(page *client.Response, member, value string) string {
	if value == "" {
		return ""
	}
	var ids, names []string
	named := make(map[string]string) // identifiers by names in small letters
	for _, row := range page.Rows {
		if row[0].IsNull() {
			continue
		}
		id := row[0].String()
		ids = append(ids, id)
		if len(page.Columns) > 2 && !row[1].IsNull() { // the companion, then the metric
			names = append(names, row[1].String())
			named[strings.ToLower(row[1].String())] = id
		}
	}
	if slices.Contains(ids, value) {
		return ""
	}
	if id, ok := named[strings.ToLower(value)]; ok {
		return fmt.Sprintf("%s is a name; filter by its %s: %s", value, member, filterFlag(member, id))
	}
	there := fmt.Sprintf("no %s is %s in these days", member, value)
	switch near := nearest(value, slices.Concat(ids, names)); {
	case near != "" && named[strings.ToLower(near)] != "":
		return fmt.Sprintf("%s; did you mean %s, %s?", there, near, filterFlag(member, named[strings.ToLower(near)]))
	case near != "":
		return fmt.Sprintf("%s; did you mean %s?", there, near)
	case page.Cursor != "":
		return ""
	case len(ids) > 0 && len(ids) <= listed:
		return fmt.Sprintf("%s; there are %s", there, strings.Join(ids, ", "))
	}
	return there
}

// filterFlag is a filter to paste behind runlens query. The identifier is a stranger's text, which no shell must run.
func filterFlag(member, id string) string {
	return "--filter " + output.Quoted(report.FilterText(member, id))
}

// listed is how many values are named where none is near.
const listed = 5
