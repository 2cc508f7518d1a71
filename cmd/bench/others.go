package main

import (
	"context"
	"fmt"
)

// mostAfterOthers is the greatest ratio of the time with rows of others to that without any.
const mostAfterOthers = 1.2

// measureAlone sends the questions of the medium organization while no other one has rows.
func (b *bench) measureAlone(ctx context.Context) error {
	if err := b.maintained(ctx, "the load of one organization"); err != nil {
		return err
	}
	if err := b.connect(ctx, b.world.medium); err != nil {
		return err
	}
	b.say("measuring: others, without them")
	var err error
	b.alone, b.aloneAnswers, err = b.askMedium(ctx)
	return err
}

// measureOthers sends the same questions when most rows belong to others: 15 times as many. The answers must be the
// same.
func (b *bench) measureOthers(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	measured, answers, err := b.askMedium(ctx)
	if err != nil {
		return err
	}
	for i, q := range all {
		b.report.check("after rows of other organizations, "+q.title(), answers[i], b.aloneAnswers[i])
		b.report.add(ratio("others", b.world.medium.title()+": "+q.title(), "alone", measured[i], b.alone[i],
			mostAfterOthers))
	}
	return nil
}

// askMedium measures the questions of the medium organization end to end.
func (b *bench) askMedium(ctx context.Context) (measured []*stats, answers []answer, err error) {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return nil, nil, err
	}
	measured, answers = make([]*stats, len(all)), make([]answer, len(all))
	for i, q := range all {
		a := b.inquiry(q, b.world.medium.first())
		one, err := b.compare(ctx, a.api)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", q.title(), err)
		}
		measured[i] = one[0]
		if answers[i], err = answerOfJSON(a.response); err != nil {
			return nil, nil, err
		}
	}
	return measured, answers, nil
}
