package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	// smallSizes is how many of the sizes are small ones, whose questions are compared over 30 days.
	smallSizes = 3
	// A question of a small organization should cost no more processor time than the reference, all questions together;
	// no single one more than mostOfOne.
	mostOfAll, mostOfOne = 1.0, 1.15
	// mostStatements is how many statements a request takes at most that was answered before.
	mostStatements = 1
	// mostOfOtherWay is how much longer an answer may take than from the same number of rows in the other way, on either
	// side of the threshold.
	mostOfOtherWay = 1.3
)

// measureSizes measures organizations of all sizes against the naive SQL on merged tables: the latency, the processor
// time of the engine and the server together, and what a request takes besides. Those from 1,000,000 runs on have the
// goals of the large one too, which are against the naive SQL on its tables as they are.
func (b *bench) measureSizes(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	if err := b.eachSize(all, func(c class, asked []question, small bool) error {
		return b.measureSize(ctx, c, asked, small)
	}); err != nil {
		return err
	}
	for _, c := range []class{b.world.medium, b.world.sizes[2]} {
		if err := b.compareWithNaive(ctx, "sizes", c.title()+": ", c, all); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// eachSize measures organizations of all sizes, each by its questions of all: those of small ones are over 30 days.
func (b *bench) eachSize(all []question, measure func(c class, asked []question, small bool) error) error {
	for i, c := range b.world.sized() {
		asked, small := all, i < smallSizes
		if small {
			asked = monthly(all)
		}
		if err := measure(c, asked, small); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) measureSize(ctx context.Context, c class, asked []question, small bool) error {
	var ours, reference, statements float64
	report := func(r result) {
		if small {
			r = r.atMost(mostOfOne)
		}
		b.report.add(r)
	}
	for _, q := range asked {
		a := b.inquiry(q, c.first())
		a.naiveSQL = strings.ReplaceAll(a.naiveSQL, "naive_", mergedPrefix)
		found, err := b.costs(ctx, costTurns, a.api, a.naive)
		if err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		if err := a.check(); err != nil {
			return err
		}
		api, naive := found[0], found[1]
		b.report.Costs = append(b.report.Costs, questionCost{c.name, c.size, q.title(), api, naive})
		name := c.title() + ": " + q.title()
		report(comparison("sizes", name, "merged naive", api.latency, naive.latency))
		statements = max(statements, api.Statements)
		if naive.processor.Median == 0 { // it is known in ticks of 10 ms, if at all
			continue
		}
		ours, reference = ours+api.processor.Median, reference+naive.processor.Median
		report(comparison("sizes, processor", name, "merged naive", api.processor, naive.processor))
	}
	if reference > 0 && small {
		b.report.add(ratio("sizes, processor", c.title()+": all questions", "merged naive",
			statsOf([]float64{ours}), statsOf([]float64{reference}), mostOfAll))
	}
	most := result{Scenario: "sizes, statements", Name: c.title() + ": most of a warm request", Unit: "statements",
		Ours: statsOf([]float64{statements}), Measured: statements}
	b.report.add(most.goal(fmt.Sprintf("at most %d", mostStatements), statements <= mostStatements))
	return nil
}

// measureThreshold compares an organization just below the size from which the rollup answers questions of a year with
// one of the same size that counts as one above it. Where one way takes much longer, the threshold is a cliff.
func (b *bench) measureThreshold(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	for _, q := range all {
		if q.days != yearDays {
			continue // of both the same way
		}
		below, above := b.inquiry(q, b.world.below.first()), b.inquiry(q, b.world.above.first())
		measured, err := b.compare(ctx, below.api, above.api)
		if err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		for _, a := range []*inquiry{below, above} {
			if err := a.naive(ctx); err != nil {
				return err
			}
			if err := a.check(); err != nil {
				return err
			}
		}
		r := ratio("threshold", q.title()+", below", "above", measured[0], measured[1], mostOfOtherWay)
		r.Measured = max(r.Measured, 1/r.Measured)
		r.Note = "(the slower way to the quicker)"
		b.report.add(r.goal(r.Goal, r.Measured <= mostOfOtherWay))
	}
	return nil
}
