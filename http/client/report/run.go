package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A Run asks one question once.
type Run struct {
	Client   *client.Client
	Question Question
	Body     *client.Query // instead of the question, of which only All counts then
	OnPage   func(*Facts)  // called after every page; nil for nobody

	Facts Facts
	byKey []client.OrderTerm // the order of the rows, unless it is a metric's
	query client.Query       // of the whole span
	span  Span
	today time.Time // the first day that is not over

	// kept are the last answers of weeks or months, which the next ones are often compared with.
	kept []keptPage

	// Of the row that came last: whether it ends its page and there is a next one, and that page's cursor.
	more   bool
	cursor string
}

// Check prepares the run at a given time; its error is wrong usage. It sends nothing.
func (r *Run) Check(now time.Time) (err error) {
	if r.Body != nil {
		r.query = *r.Body
		r.Question = Question{All: r.Question.All, Limit: cmp.Or(r.Body.Limit, defaultLimit)}
		return nil
	}
	r.today = TodayIn(r.Question.Timezone, now)
	if r.span, err = r.Question.Span(now); err != nil {
		return err
	}
	if r.query, err = r.Question.Build(r.span); err != nil {
		return err
	}
	r.byKey = completeOrder(r.query)
	return r.checkEarlier()
}

// checkEarlier refuses a comparison with more days than a query may have: those of a year before have one more where
// the 29th of February is among them.
func (r *Run) checkEarlier() error {
	if r.Question.Compare == "" || r.Question.Grain != "" {
		return nil
	}
	s := r.Question.compared(r.span, r.today)
	if !s.complete() || s.now.Days() > client.MaxRangeDays || s.earlier.Days() <= client.MaxRangeDays {
		return nil
	}
	return fmt.Errorf("%s would be compared with %s, which are %d days, at most %d: leave out the last day", s.now,
		s.earlier, s.earlier.Days(), client.MaxRangeDays)
}

// defaultLimit is the API's (spec 2.10).
const defaultLimit = 100

// Query is the query of the whole span, for explaining a refusal.
func (r *Run) Query() client.Query { return r.query }

// Table asks for the first page and returns the table that it begins. Call Check before.
func (r *Run) Table(ctx context.Context) (Table, error) {
	if r.Question.Grain == "" {
		return r.part(ctx, r.span)
	}
	return r.grained(ctx)
}

// First is the query of the first page that Table asks for. Call Check before.
func (r *Run) First() client.Query {
	if r.Question.Grain == "" {
		return r.queryOf(r.asked(r.span))
	}
	return r.queryOf(r.asked(r.Question.Periods(r.span)[0].Span))
}

// asked is the part of a span that is asked for. Of what is compared it is the complete days, unless every day has a
// row of its own, or none is complete.
func (r *Run) asked(span Span) Span {
	if r.Question.Compare == "" || slices.Contains(r.Question.Dimensions, "day") {
		return span
	}
	if s := r.Question.compared(span, r.today); s.complete() {
		return s.now
	}
	return span
}

// queryOf is the query of one span: the whole of it, a week or a month.
func (r *Run) queryOf(span Span) client.Query {
	q := r.query
	if r.Body == nil {
		q.Range = span.in(q.Range.Timezone)
		q.Limit = client.MaxLimit
		// What is filled or compared may need more rows than it gives.
		if !r.Question.All && (r.plain() || byMetric(q)) {
			q.Limit = min(r.Question.Limit, client.MaxLimit)
		}
	} else if !r.Question.All {
		q.Limit = r.Question.Limit
	} else if q.Limit == 0 {
		q.Limit = client.MaxLimit // as Pages would take
	}
	return q
}

// part is the table of one span.
func (r *Run) part(ctx context.Context, span Span) (Table, error) {
	q := r.queryOf(r.asked(span))
	table, err := r.open(ctx, q)
	if err == nil && r.Question.Compare != "" {
		table, err = r.compare(ctx, table, q, r.Question.compared(span, r.today))
	}
	if err != nil {
		return table, err
	}
	if r.Question.Fill && r.Question.Grain == "" {
		table = r.fill(table, span, r.byKey)
	}
	if !r.Question.All {
		table.Rows = r.limited(table.Rows)
	}
	return table, nil
}

// plain reports whether the rows of a span are those of one query.
func (r *Run) plain() bool { return r.Question.Compare == "" && !r.Question.Fill }

// limited ends the rows at the question's limit, and finds out whether there is one more: from the cursor where the
// limit is the end of a page, else by reading on.
func (r *Run) limited(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		count := 0
		for row, err := range rows {
			if count == r.Question.Limit && err == nil {
				r.Facts.More = true
				return
			}
			count++
			if !yield(row, err) || err != nil {
				return
			}
			if count == r.Question.Limit && r.more {
				if r.Facts.More = true; r.plain() && r.Question.Grain == "" {
					r.Facts.Next = r.cursor
				}
				return
			}
		}
	}
}

// open asks for the first page of a query and returns the rows of all its pages.
func (r *Run) open(ctx context.Context, q client.Query) (Table, error) {
	first, err := r.first(ctx, q)
	if err != nil {
		return Table{}, err
	}
	if again := slices.ContainsFunc(r.kept, func(k keptPage) bool { return k.page == first }); !again {
		r.seen(first)
		r.keep(q, first)
	}
	columns := columnsOf(first)
	for _, member := range slices.Concat(q.Dimensions, q.Metrics) {
		if !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == member }) {
			return Table{}, fmt.Errorf("the answer has no column %s", member)
		}
	}
	if byMetric(q) && len(first.Rows) == q.Limit {
		r.Facts.Cut = true
		r.Facts.note(fmt.Sprintf("The first %d rows in the order of a metric; the API gives at most %d of them. "+
			"In the order of dimensions all rows come.", q.Limit, client.MaxLimit))
	}
	pages := func(yield func(*client.Response, error) bool) {
		if yield(first, nil) && first.Cursor != "" {
			q.Cursor = first.Cursor
			r.Client.Pages(ctx, q)(yield)
		}
	}
	rows := func(yield func(Row, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			if page != first {
				r.seen(page)
			}
			for i, row := range page.Rows {
				r.more, r.cursor = page.Cursor != "" && i == len(page.Rows)-1, page.Cursor
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	return Table{columns, rows}, nil
}

// A keptPage is the only page of an answer.
type keptPage struct {
	query client.Query
	page  *client.Response
}

// maxKept is how many pages are kept: those of a week, of what it was compared with, and of the next week, which is
// compared with the first of them.
const maxKept = 3

// first asks for the first page of a query, or returns the one that is kept of the same query.
func (r *Run) first(ctx context.Context, q client.Query) (page *client.Response, err error) {
	for _, k := range r.kept {
		if reflect.DeepEqual(q, k.query) {
			return k.page, nil
		}
	}
	r.Client.Pages(ctx, q)(func(p *client.Response, e error) bool {
		page, err = p, e
		return false
	})
	return page, err
}

func (r *Run) keep(q client.Query, page *client.Response) {
	if r.Question.Grain != "" && r.Question.Compare != "" && page.Cursor == "" {
		r.kept = append(r.kept[max(len(r.kept)-maxKept+1, 0):], keptPage{q, page})
	}
}

func (r *Run) seen(page *client.Response) {
	r.Facts.saw(page)
	if r.OnPage != nil {
		r.OnPage(&r.Facts)
	}
}

// Queries are those that answer the question, without their further pages: one for the span, or for each week or month
// of it, and after each the one of the period that it is compared with, unless that is another week or month of it.
func (r *Run) Queries() (all []client.Query) {
	spans := []Period{{Span: r.span}}
	if r.Question.Grain != "" {
		spans = r.Question.Periods(r.span)
	}
	for _, span := range spans {
		q := r.query
		q.Range, q.Limit = r.asked(span.Span).in(q.Range.Timezone), client.MaxLimit
		if !r.Question.All {
			q.Limit = min(r.Question.Limit, client.MaxLimit)
		}
		all = append(all, q)
		if s := r.Question.compared(span.Span, r.today); r.Question.Compare != "" && s.complete() {
			q.Range = s.earlier.in(q.Range.Timezone)
			kept := all[max(len(all)-maxKept, 0):]
			known := slices.ContainsFunc(kept, func(asked client.Query) bool { return asked.Range == q.Range })
			if !known || byMetric(q) {
				all = append(all, q)
			}
		}
	}
	return all
}
