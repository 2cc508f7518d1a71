package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A drawing is the question whose rows are drawn and listed, and what a person should know of it.
type drawing struct {
	question report.Question
	rank     map[string]int // of the groups, by output.GroupOf; nil without groups
	only     string         // which groups are drawn, in words; empty for all
	notes    []string
}

// drawn chooses the rows of a look. Over time only the groups with the most runs are drawn: more would make the chart
// unreadable.
func (c *Console) drawn(ctx context.Context, l look, fresh time.Duration) (drawing, error) {
	d := drawing{question: l.Question}
	groups := l.groups()
	if l.over() == "" {
		switch {
		case l.sortedByAPI():
			d.question.Order = []string{l.Sort}
		case len(groups) > 0 && len(l.Order) == 0:
			d.question.Order = []string{c.ranking(l) + ":desc"}
		}
		d.question.All, d.question.Limit = false, min(l.Limit, client.MaxLimit)
		return d, nil
	}
	d.question.All = true
	if len(groups) == 0 {
		return d, nil
	}
	rank := l.totals()
	rank.Metrics, rank.Dimensions, rank.Order = []string{c.ranking(l)}, groups, []string{c.ranking(l) + ":desc"}
	rank.Compare, rank.Weekdays, rank.Limit = "", false, l.Top+1
	top, err := c.ask(ctx, rank, fresh)
	if err == nil {
		d.keep(top, l.Top)
	}
	return d, err
}

// sortedByAPI reports whether the answer comes in the order of the table. The API sorts by members, and knows all rows;
// over time and by the columns of a comparison the console sorts the rows that it has.
func (l look) sortedByAPI() bool {
	by := strings.TrimSuffix(l.Sort, ":desc")
	return l.over() == "" && (slices.Contains(l.Metrics, by) || slices.Contains(l.Dimensions, by))
}

// keep chooses the first groups of an answer, as far as filters can: they are few, and take no long values. Rows of
// other groups that they let through are for onlyGroups.
func (d *drawing) keep(top *answer, count int) {
	d.rank = make(map[string]int, count)
	for i, row := range top.rows[:min(count, len(top.rows))] {
		d.rank[output.GroupOf(top.columns, row)] = i
	}
	if len(top.rows) <= count {
		return
	}
	d.only = fmt.Sprintf("the %d groups with the %s", count, most(top.question.Metrics[0], false))
	d.notes = append(d.notes, "Drawn and listed are "+d.only+". The totals are of all.")
	d.question.Filter = slices.Clone(d.question.Filter)
	for i, column := range top.columns {
		if column.Name != column.Member || column.Numeric() {
			continue
		}
		var values []string
		chosen, null := len(d.question.Filter) < client.MaxFilters, false // by a filter
		for _, row := range top.rows[:count] {
			value := row[i].String()
			switch {
			case row[i].IsNull():
				null = true
			case !slices.Contains(values, value):
				values = append(values, value)
				chosen = chosen && fits(row[i])
			}
		}
		if !chosen || len(values) == 0 {
			continue
		}
		d.question.Filter = append(d.question.Filter, report.FilterText(column.Name, values...))
		if null {
			d.notes = append(d.notes, "What has no "+words(column.Name)+" is not drawn: no filter can choose it.")
		}
	}
}

// totals is the question for the whole, whose answer is exact where the sum of the groups would not be.
func (l look) totals() report.Question {
	q := l.Question
	q.Dimensions, q.Order, q.Grain, q.Fill = nil, nil, "", false
	q.Limit, q.All = 1, false
	return q
}

// A shown is the answer to a look.
type shown struct {
	look    look
	span    report.Span
	totals  *answer
	rows    *answer // nil for a look without dimensions
	rank    map[string]int
	only    string  // which groups the rows are of, in words; empty for all
	days    *answer // of the first page alone, as its leaders
	leaders []*leaders
	notes   []string
	costly  int      // how many queries the rows would take, which were not asked for; 0 where they were
	failed  *refusal // why there is no newer one

	// fewLeftOut says that the key leaves out groups of too few people. No answer tells them from groups without data.
	fewLeftOut bool
}

// today is the first day that was not over when the answers were asked for: they are shown later too.
func (s *shown) today() time.Time {
	at := s.totals.at
	for _, a := range s.answers() {
		if a.at.Before(at) {
			at = a.at
		}
	}
	return report.TodayIn(s.look.Timezone, at)
}

// answers are all that the page has numbers of.
func (s *shown) answers() []*answer {
	all := []*answer{s.totals, s.rows, s.days}
	for _, board := range s.leaders {
		all = append(all, board.answer)
	}
	return slices.DeleteFunc(all, func(a *answer) bool { return a == nil })
}

// counted are the days that the rows are of: a comparison leaves today out, unless every day has rows of its own.
func (a *answer) counted() report.Span {
	counted := a.span
	if end, err := time.Parse(time.DateOnly, a.facts.Range.End); err == nil {
		counted.End = end
	}
	return counted
}

// bytes is about what it takes in memory.
func (s *shown) bytes() int {
	bytes := 0
	for _, a := range s.answers() {
		bytes += a.bytes()
	}
	return bytes
}

// show answers a look: its totals and its rows.
func (c *Console) show(ctx context.Context, l look, fresh time.Duration) (*shown, error) {
	return c.showing(l, l.address(), func() (*shown, error) {
		s := &shown{look: l}
		both, ctx := errgroup.WithContext(ctx)
		both.Go(func() (err error) {
			s.totals, err = c.ask(ctx, l.totals(), fresh)
			return err
		})
		both.Go(func() error { return c.answerRows(ctx, s, l, fresh) })
		err := both.Wait()
		if err == nil {
			s.finish()
		}
		return s, err
	})
}

// showing answers a look. If that fails and it was answered before, it returns that answer with the reason.
// The error is a *refusal, or the context's.
func (c *Console) showing(l look, name string, answer func() (*shown, error)) (*shown, error) {
	if err := l.check(); err != nil {
		return nil, &refusal{line: err.Error()}
	}
	key := keyOf(name)
	s, err := answer()
	if err == nil {
		c.lastShown.Put(everybody, key, s, s.bytes())
		return s, nil
	}
	var refused *refusal
	if kept, ok := c.lastShown.Get(everybody, key); ok && errors.As(err, &refused) {
		stale := *kept
		stale.failed = refused
		return &stale, nil
	}
	return nil, err
}

// answerRows asks for the rows of a look, if it has some.
func (c *Console) answerRows(ctx context.Context, s *shown, l look, fresh time.Duration) error {
	if len(l.Dimensions) == 0 && l.Grain == "" {
		return nil
	}
	d, err := c.drawn(ctx, l, fresh)
	if err != nil {
		return err
	}
	rows, err := c.ask(ctx, d.question, fresh)
	if err != nil {
		return err
	}
	s.rows, s.rank, s.only = rows.onlyGroups(d.rank), d.rank, d.only
	s.notes = slices.Concat(d.notes, s.rows.facts.Notes)
	return nil
}

// finish puts the answers together.
func (s *shown) finish() {
	s.span = s.totals.span
	for _, note := range s.totals.facts.Notes { // as with which days the totals are compared
		if !slices.Contains(s.notes, note) {
			s.notes = append(s.notes, note)
		}
	}
}

// onlyGroups is the answer without the rows of groups that have no rank, which the filters of drawing.keep let through.
func (a *answer) onlyGroups(rank map[string]int) *answer {
	if rank == nil {
		return a
	}
	kept := *a
	kept.rows = nil
	for _, row := range a.rows {
		if _, ranked := rank[output.GroupOf(a.columns, row)]; ranked {
			kept.rows = append(kept.rows, row)
		}
	}
	return &kept
}

// ranking is the metric by which groups are ordered: the first one chosen whose values add up, else the first one.
func (c *Console) ranking(l look) string {
	model := c.model(l.Model)
	for _, name := range l.Metrics {
		if m := metricOf(model, name); m.Additive {
			return name
		}
	}
	return l.Metrics[0]
}
