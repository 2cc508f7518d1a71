package main

import (
	"context"
	"time"
)

const (
	// mostOfWarm is how long the first question of an organization may take, of a later one.
	mostOfWarm = 1.15
	coldStarts = 5
)

// firstAndLater are the times of a question in milliseconds, the first of an organization and those of the same one
// asked again.
type firstAndLater struct{ first, later []float64 }

// measureCold measures the first question of organizations after a start, against the same question asked again. In
// every start each organization asks one question, a different one in every start. Only the server is new to them: the
// engine has read their tables before.
func (b *bench) measureCold(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	asked := monthly(all)
	measured := make([]firstAndLater, len(asked))
	var ofServer firstAndLater
	for start := range coldStarts {
		if err := b.coldStart(ctx, start, asked, measured, &ofServer); err != nil {
			return err
		}
	}
	var first, later [][]float64
	for i, q := range asked {
		m := measured[i]
		first, later = append(first, m.first), append(later, m.later)
		r := ratio("cold", "first question, "+q.title(), "later", statsOf(m.first), statsOf(m.later), mostOfWarm)
		b.report.add(r)
	}
	r := ratio("cold", "first question, all", "later", relative(first, later), relative(later, later), mostOfWarm)
	r.Unit = "of later"
	b.report.add(r)
	b.report.add(ratio("cold", "first question of a server", "later", statsOf(ofServer.first), statsOf(ofServer.later),
		mostOfWarm))
	return nil
}

// coldStart adds the times of one start, and those of its very first question.
func (b *bench) coldStart(
	ctx context.Context, start int, asked []question, measured []firstAndLater, ofServer *firstAndLater,
) error {
	askers, stop, err := b.askers(ctx, int(b.world.small.count))
	if err != nil {
		return err
	}
	defer stop()
	for k := range max(len(askers), len(asked)) { // in a small world an organization asks several questions
		i := (k + start) % len(asked)
		body := asked[i].body(b.world.lastDays(monthDays))
		var m firstAndLater
		for round := range 1 + b.Repeat {
			began := time.Now()
			if _, err := askers[k%len(askers)].client.query(ctx, body); err != nil {
				return err
			}
			if took := milliseconds(time.Since(began)); round == 0 {
				m.first = append(m.first, took)
			} else {
				m.later = append(m.later, took)
			}
		}
		into := &measured[i]
		if k == 0 {
			into = ofServer
		}
		into.first, into.later = append(into.first, m.first...), append(into.later, m.later...)
	}
	return nil
}
