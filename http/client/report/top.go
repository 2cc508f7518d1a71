package report

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runlens/runlens/http/client"
)

// top joins the rows that come in the order of a metric with the earlier rows of the same groups. The API gives no
// more than 500 of the former; they are held. The earlier ones are read in the order of their dimensions.
func (c comparison) top(ctx context.Context, now Table, q client.Query) (Table, error) {
	var held []Row
	for row, err := range now.Rows {
		if err != nil {
			return now, err
		}
		held = append(held, row)
	}
	found := make(map[string]Row, len(held))
	for _, row := range held {
		found[c.key(row)] = nil
	}
	q.Order = nil
	q.Filters = append(slices.Clip(q.Filters), c.onlyGroupsOf(held, q)...)
	earlier, err := c.run.open(ctx, q)
	if err != nil {
		return earlier, err
	}
	for row, err := range c.moved(earlier.Rows) {
		if err != nil {
			return earlier, err
		}
		if _, wanted := found[c.key(row)]; wanted {
			found[c.key(row)] = row
		}
	}
	rows := func(yield func(Row, error) bool) {
		for _, row := range held {
			if !yield(c.join(row, found[c.key(row)]), nil) {
				return
			}
		}
	}
	return Table{c.result, rows}, nil
}

// key is the same for rows of one group only: a text is quoted, null is not.
func (c comparison) key(row Row) string {
	var key strings.Builder
	for _, at := range c.keys {
		if row[at].IsNull() {
			key.WriteString("null")
		} else {
			key.WriteString(strconv.Quote(row[at].String()))
		}
	}
	return key.String()
}

// onlyGroupsOf are filters that the groups of all rows pass, so that few others are read. A filter cannot name null,
// nor long values.
func (c comparison) onlyGroupsOf(rows []Row, q client.Query) (filters []client.Filter) {
	for _, at := range c.keys {
		var values []string
		ok := at != c.day && len(rows) > 0 && len(q.Filters)+len(filters) < client.MaxFilters
		for _, row := range rows {
			value := row[at].String()
			ok = ok && value != "" && utf8.RuneCountInString(value) <= client.MaxFilterLength
			if ok && !slices.Contains(values, value) {
				values = append(values, value)
				ok = len(values) <= client.MaxFilterValues
			}
		}
		if ok {
			filters = append(filters, client.In(c.now[at].Name, values...))
		}
	}
	return filters
}
