package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// maxQueries bounds the queries that answer one call, inclusive: with weeks or months it may be many. A key has as many
// a minute unless its server says otherwise.
const maxQueries = 60

// arguments are what the query tool takes: a query of the API, and what the terminal's command adds to it.
type arguments struct {
	client.Query
	Range    period `json:"range"` // instead of the query's
	Grain    string `json:"grain,omitempty"`
	Compare  string `json:"compare,omitempty"`
	Weekdays bool   `json:"weekdays,omitempty"`
	Fill     bool   `json:"fill,omitempty"`
}

// A period is a range of days, which may be named by how far it goes back.
type period struct {
	Start     string `json:"start,omitempty"`
	End       string `json:"end,omitempty"`
	Last      string `json:"last,omitempty"` // also "today" and "yesterday"
	Timezone  string `json:"timezone"`
	WeekStart string `json:"weekStart,omitempty"`
}

// argumentsOf is what asks a saved question whole. A threshold is no part of an answer, and left out.
func argumentsOf(q report.Question) (arguments, error) {
	a := arguments{Range: period{q.Start, q.End, q.Last, q.Timezone, q.WeekStart}, Grain: q.Grain, Compare: q.Compare,
		Weekdays: q.Weekdays, Fill: q.Fill}
	switch {
	case q.Today:
		a.Range.Last = "today"
	case q.Yesterday:
		a.Range.Last = "yesterday"
	}
	if q.WeekStart == "monday" { // the default
		a.Range.WeekStart = ""
	}
	built, err := q.Build(report.Span{})
	a.Query = built
	if a.Limit = min(q.Limit, client.MaxLimit); q.All {
		a.Limit = client.MaxLimit
	}
	return a, err
}

// run is the report that answers the call at a given time.
func (a arguments) run(c *client.Client, now time.Time) (*report.Run, error) {
	q, err := a.question()
	if err != nil {
		return nil, err
	}
	run := &report.Run{Client: c, Question: q}
	if a.Grain == "" && a.Compare == "" && !a.Fill && !a.Weekdays { // a page of the API, and the server judges it
		span, err := q.Span(now)
		if err != nil {
			return nil, err
		}
		a.Query.Range = client.Range{Start: span.Start.Format(time.DateOnly), End: span.End.Format(time.DateOnly),
			Timezone: q.Timezone}
		run.Body = &a.Query
		return run, run.Check(now)
	}
	if a.Cursor != "" {
		return nil, errors.New("cursor goes with neither grain, compare nor fill; narrow the question by a filter")
	}
	if err := run.Check(now); err != nil {
		return nil, err
	}
	if count := len(run.Queries()); count > maxQueries {
		return nil, fmt.Errorf("this takes %d queries, and at most %d are asked at once: take a shorter range, "+
			"or months for weeks", count, maxQueries)
	}
	return run, nil
}

// question is the call in the words of the terminal. A plain query keeps its own filters and order.
func (a arguments) question() (report.Question, error) {
	q := report.Default()
	q.Model, q.Metrics, q.Dimensions, q.Timezone = a.Model, a.Metrics, a.Dimensions, a.Range.Timezone
	q.Start, q.End, q.Grain, q.Compare, q.Weekdays, q.Fill = a.Range.Start, a.Range.End, a.Grain, a.Compare, a.Weekdays,
		a.Fill
	if a.Limit != 0 {
		q.Limit = a.Limit
	}
	if a.Range.WeekStart != "" {
		q.WeekStart = a.Range.WeekStart
	}
	switch a.Range.Last {
	case "today":
		q.Today = true
	case "yesterday":
		q.Yesterday = true
	default:
		q.Last = a.Range.Last
	}
	for i, f := range a.Filters {
		values := f.Values
		if f.Op == "eq" {
			values = []string{f.Value}
		}
		if (f.Op == "eq") != (f.Values == nil) || f.Op == "in" && f.Value != "" {
			return q, fmt.Errorf("filters[%d]: eq has value, in has values", i)
		}
		q.Filter = append(q.Filter, report.FilterText(f.Member, values...))
	}
	for _, term := range a.Order {
		q.Order = append(q.Order, term.Member+":"+string(term.Direction))
	}
	return q, nil
}

// answered reads the rows that there is space for.
func (t *tools) answered(ctx context.Context, run *report.Run, catalog *client.Catalog) (*answer, error) {
	table, err := run.Table(ctx)
	if err != nil {
		return nil, err
	}
	a := &answer{Columns: columnsOf(table.Columns, run, catalog), Rows: [][]client.Value{}}
	size := 0
	for row, err := range table.Rows {
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		if size += len(text) + len(","); size > maxRowBytes {
			fewer := fmt.Sprintf("limit %d", max(len(a.Rows), 1))
			if grain := run.Question.Grain; grain != "" { // these are rows of several weeks
				fewer = "a smaller limit of each " + grain
			}
			a.Truncated = fmt.Sprintf("rows after these %d are left out, since an answer has at most %d bytes of them; "+
				"ask with %s, fewer dimensions, a shorter range or a filter", len(a.Rows), maxRowBytes, fewer)
			break
		}
		a.Rows = append(a.Rows, slices.Clone(row))
	}
	f := run.Facts
	a.Range, a.AsOf, a.Warnings, a.Notes, a.QueryID = f.Range, f.AsOf, f.Warnings, f.Notes, f.QueryID
	if a.Warnings == nil {
		a.Warnings = []client.Warning{}
	}
	a.Today = report.TodayIn(f.Range.Timezone, t.Now()).Format(time.DateOnly)
	if a.Truncated == "" && f.More {
		if a.Cursor = f.Next; a.Cursor == "" {
			a.Truncated = "there are further rows: ask with "
			if run.Question.Limit < client.MaxLimit {
				a.Truncated += "a greater limit, "
			}
			a.Truncated += "fewer dimensions, a shorter range or a filter"
		}
	}
	return a, nil
}
