package console

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// allMetrics are those of a model that are not deprecated, and those that were chosen in any case.
func allMetrics(model client.Model, chosen []string) (names []string) {
	for _, m := range model.Metrics {
		if m.Deprecated == nil || slices.Contains(chosen, m.Name) {
			names = append(names, m.Name)
		}
	}
	for _, name := range chosen { // the API says what is wrong with a name that it does not have
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// overview answers a look with everything that the first page shows. Its questions have all metrics, so that another
// one is drawn without asking again.
func (c *Console) overview(ctx context.Context, l look, fresh time.Duration) (*shown, error) {
	return c.showing(l, "overview "+l.address(), func() (*shown, error) { return c.answerAll(ctx, l, fresh) })
}

func (c *Console) answerAll(ctx context.Context, l look, fresh time.Duration) (*shown, error) {
	s, all, model := &shown{look: l}, l, c.model(l.Model)
	all.Metrics = allMetrics(model, l.Metrics)
	asked, ctx := errgroup.WithContext(ctx)
	ask := func(to **answer, q report.Question) {
		asked.Go(func() (err error) {
			*to, err = c.ask(ctx, q, fresh)
			return err
		})
	}
	ask(&s.totals, all.totals())
	ask(&s.days, all.daily())
	for _, d := range model.Dimensions {
		if d.Type != client.TypeDate && d.Deprecated == nil {
			board := &leaders{dimension: d.Name}
			s.leaders = append(s.leaders, board)
			asked.Go(func() error { return c.lead(ctx, board, all, l.Metrics[0], fresh) })
		}
	}
	run := report.Run{Question: l.Question}
	switch {
	case l.over() == "day" && len(l.groups()) == 0: // the rows are those of the days
	case run.Check(c.Now()) == nil && !l.Patient && len(run.Queries()) > perMinute:
		s.costly = len(run.Queries())
	default:
		asked.Go(func() error { return c.answerRows(ctx, s, l, fresh) })
	}
	if err := asked.Wait(); err != nil {
		return nil, err
	}
	for _, board := range s.leaders {
		if board.answer == nil {
			s.notes = append(s.notes, "The key of this console shows no "+words(board.dimension)+".")
			s.fewLeftOut = true
		}
	}
	if s.fewLeftOut && (l.Compare != "" || l.Fill) {
		s.notes = append(s.notes, "It leaves out groups of too few people: what is compared or filled counts them as 0.")
	}
	s.leaders = slices.DeleteFunc(s.leaders, func(board *leaders) bool { return board.answer == nil })
	if l.over() == "day" && len(l.groups()) == 0 {
		s.rows = s.days.only(l.Metrics)
		s.notes = append(s.notes, s.rows.facts.Notes...)
	}
	s.finish()
	return s, nil
}

// daily is the question for every day.
func (l look) daily() report.Question {
	q := l.totals()
	q.Dimensions, q.All, q.Fill = []string{"day"}, true, l.Fill
	if l.over() != "day" || len(l.groups()) > 0 {
		q.Compare, q.Weekdays = "", false // the days are for small lines alone
	}
	return q
}

// leaders are the groups of one dimension.
type leaders struct {
	dimension string
	answer    *answer // nil where the key shows none of them
	ranked    string  // the metric of whose highest or lowest groups these are; empty for all groups
}

// lead asks for all groups, with those that only the earlier period has, or for the highest ones where there are more
// than the API gives at once.
func (c *Console) lead(ctx context.Context, board *leaders, all look, metric string, fresh time.Duration) (err error) {
	q := all.totals()
	q.Dimensions, q.Limit = []string{board.dimension}, client.MaxLimit
	board.answer, err = c.ask(ctx, q, fresh)
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.forbids == board.dimension {
		return nil
	}
	if err != nil || !board.answer.facts.More {
		return err
	}
	board.ranked = metric
	q.Order = []string{metric + ":desc"}
	if all.By == "lowest" {
		q.Order = []string{metric}
	}
	board.answer, err = c.ask(ctx, q, fresh)
	return err
}
