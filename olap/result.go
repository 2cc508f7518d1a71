package olap

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
)

// A Result is the answer to a query (spec 2.14).
type Result struct {
	request    narrowed
	execution  uuid.UUID
	strategy   Strategy
	fromRollup bool // it rests on the rollup
	asOf       time.Time
	table      *exec.Table
	cursor     string // empty for the last page
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
func (r *Result) lastKeys(order []int) []value.Value {
	last := r.table.Rows[len(r.table.Rows)-1]
	keys := make([]value.Value, len(order))
	for i, position := range order {
		keys[i] = last[position]
	}
	return keys
}

// AppendJSON appends the response body of spec 2.14 to b. Only values may need an escape.
func (r *Result) AppendJSON(b []byte) []byte {
	q := r.request.Query
	b = fmt.Appendf(b, `{"queryId":"%s","catalogVersion":"%s","asOf":"%s",`,
		r.request.QueryID, catalog.Version, Instant(r.asOf))
	b = fmt.Appendf(b, `"range":{"start":"%s","end":"%s","timezone":"%s","startUtc":"%s","endUtc":"%s"},"columns":`,
		q.Range.Start, q.Range.End, q.Range.Timezone, Instant(q.Range.StartUTC), Instant(q.Range.EndUTC))
	b = appendList(b, r.table.Columns, func(b []byte, c compile.Column) []byte {
		return fmt.Appendf(b, `{"name":"%s","type":"%s","member":"%s"}`, c.Name, c.Kind.Type(), c.Member)
	})
	b = append(b, `,"rows":`...)
	b = appendList(b, r.table.Rows, func(b []byte, row []value.Value) []byte {
		return appendList(b, row, func(b []byte, v value.Value) []byte { return v.AppendJSON(b) })
	})
	b = append(b, `,"cursor":`...)
	if r.cursor == "" {
		b = append(b, "null"...)
	} else {
		b = fmt.Appendf(b, `"%s"`, r.cursor)
	}
	b = append(b, `,"warnings":`...)
	b = appendList(b, r.notAdditive(), appendWarning)
	return append(b, '}')
}

// appendList appends a JSON array.
func appendList[E any](b []byte, elements []E, appendOne func([]byte, E) []byte) []byte {
	b = append(b, '[')
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOne(b, element)
	}
	return append(b, ']')
}

// notAdditive are the selected metrics whose values must not be summed (spec 4.2 rule 8).
func (r *Result) notAdditive() []*catalog.Metric {
	additive := func(m *catalog.Metric) bool { return m.Additive }
	return slices.DeleteFunc(slices.Clone(r.request.Query.Metrics), additive)
}

func appendWarning(b []byte, m *catalog.Metric) []byte {
	return fmt.Appendf(b, `{"code":"non_additive_metric","member":"%s","message":"Values of %[1]s must not be added up`+
		` across groups, pages or ranges: query the wider group instead."}`, m.Name)
}

// A Strategy says how an answer was computed, for logs and metrics: no answer depends on it.
type Strategy struct {
	// Reads is what the statement read: "base" rows, "rollup_rows" or "rollup_aggregates"; "cached_answer" for no
	// statement at all.
	Reads string `json:"reads"`
	// Delta is how the statement had what the rollup lacks: "none" where it lacks nothing, "inline" (computed in the
	// statement) or "cached" (sent along). Empty for base rows.
	Delta string `json:"delta,omitzero"`
	// Page is "single" for an answer that no page was expected to follow, "first" or "next".
	Page string `json:"page"`
	// Reason is why no faster strategy was used (plan.Reason); empty where there is none.
	Reason string `json:"reason,omitzero"`
	// Refreshing says that a refresh of the rollup was in progress when the plan was made.
	Refreshing bool `json:"refreshing,omitzero"`
	// Attempt is the number of the statement, from 1, 0 for a cached answer, and Refuted what earlier ones assumed
	// wrongly.
	Attempt int      `json:"attempt"`
	Refuted []string `json:"refuted,omitzero"`
}

// attributes are what a span says of the statement.
func (s *Strategy) attributes(id uuid.UUID) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("runlens.query_id", id.String()), attribute.String("runlens.strategy.reads", s.Reads),
		attribute.String("runlens.strategy.delta", s.Delta), attribute.String("runlens.strategy.page", s.Page),
		attribute.String("runlens.strategy.reason", s.Reason), attribute.Int("runlens.strategy.attempt", s.Attempt),
	}
}

func strategyOf(a *attempt, p plan.Plan) Strategy {
	return Strategy{
		Reads: p.Strategy.String(), Delta: p.Delta.String(), Page: p.Page(), Reason: string(p.Reason),
		Refreshing: a.delta.Snapshot.Log.Refreshing, Attempt: a.number, Refuted: a.refuted.Names(),
	}
}

// comment is what ClickHouse's own log says about an execution.
func comment(r narrowed, strategy Strategy) string {
	text, err := json.Marshal(struct {
		RequestID      string                `json:"request_id"`
		OrganizationID schema.OrganizationID `json:"organization_id"`
		KeyID          string                `json:"key_id"`
		Strategy       Strategy              `json:"strategy"`
	}{r.RequestID, r.OrganizationID, r.KeyID, strategy})
	if err != nil {
		return fmt.Sprintf("comment: %v", err)
	}
	return string(text)
}
