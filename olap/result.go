package olap

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/exec"
)

// instantFormat is RFC 3339 in UTC with milliseconds (contract 4.8).
const instantFormat = "2006-01-02T15:04:05.000Z"

// A Result is the answer to a query (spec 2.14).
type Result struct {
	request   Request
	execution uuid.UUID
	strategy  Strategy
	asOf      time.Time
	table     *exec.Table
	cursor    string // empty for the last page
}

// Execution is ClickHouse's query_id of the statement that gave the answer: the request's QueryID, unless the
// statement served several requests or had to be run once more.
func (r *Result) Execution() uuid.UUID { return r.execution }

// Strategy is how the answer was computed.
func (r *Result) Strategy() Strategy { return r.strategy }

// RowCount is the number of rows on this page.
func (r *Result) RowCount() int { return len(r.table.Rows) }

// cut takes off what is beyond the page and reports whether there was something.
func (r *Result) cut() bool {
	limit := r.request.Query.Limit
	if len(r.table.Rows) <= limit {
		return false
	}
	r.table.Rows = r.table.Rows[:limit]
	return true
}

// lastKeys are the last row's values of the order's columns.
func (r *Result) lastKeys(order []int) []cursor.Value {
	last := r.table.Rows[len(r.table.Rows)-1]
	keys := make([]cursor.Value, len(order))
	for i, position := range order {
		keys[i] = last[position].Key()
	}
	return keys
}

// AppendJSON appends the response body of spec 2.14 to b.
func (r *Result) AppendJSON(b []byte) []byte {
	q := r.request.Query
	b = append(b, `{"queryId":"`...)
	b = append(b, r.request.QueryID.String()...)
	b = append(b, `","catalogVersion":`...)
	b = exec.AppendText(b, catalog.Version)
	b = append(b, `,"asOf":`...)
	b = appendInstant(b, r.asOf)
	b = append(b, `,"range":{"start":"`...)
	b = append(b, q.Range.Start.String()...)
	b = append(b, `","end":"`...)
	b = append(b, q.Range.End.String()...)
	b = append(b, `","timezone":`...)
	b = exec.AppendText(b, q.Range.Timezone)
	b = append(b, `,"startUtc":`...)
	b = appendInstant(b, q.Range.StartUTC)
	b = append(b, `,"endUtc":`...)
	b = appendInstant(b, q.Range.EndUTC)
	b = append(b, `},"columns":`...)
	b = r.appendColumns(b)
	b = append(b, `,"rows":`...)
	b = r.appendRows(b)
	b = append(b, `,"cursor":`...)
	if r.cursor == "" {
		b = append(b, "null"...)
	} else {
		b = exec.AppendText(b, r.cursor)
	}
	b = append(b, `,"warnings":`...)
	b = r.appendWarnings(b)
	return append(b, '}')
}

func appendInstant(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, instantFormat)
	return append(b, '"')
}

func (r *Result) appendColumns(b []byte) []byte {
	b = append(b, '[')
	for i, c := range r.table.Columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = exec.AppendText(b, c.Name)
		b = append(b, `,"type":`...)
		b = exec.AppendText(b, c.Type)
		b = append(b, `,"member":`...)
		b = exec.AppendText(b, c.Member)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (r *Result) appendRows(b []byte) []byte {
	b = append(b, '[')
	for i, row := range r.table.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, value := range row {
			if j > 0 {
				b = append(b, ',')
			}
			b = value.AppendJSON(b)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// appendWarnings names each selected metric whose values must not be summed (spec 4.2 rule 8).
func (r *Result) appendWarnings(b []byte) []byte {
	var warnings []string
	for _, metric := range r.request.Query.Metrics {
		if !metric.Additive {
			warnings = append(warnings, `{"code":"non_additive_metric","member":"`+metric.Name+
				`","message":"Values of `+metric.Name+` must not be added up across groups, pages or ranges: query the wider `+
				`group instead."}`)
		}
	}
	return append(append(append(b, '['), strings.Join(warnings, ",")...), ']')
}
