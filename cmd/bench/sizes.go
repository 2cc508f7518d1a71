package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// smallSizes is how many of the sizes are small ones, whose questions are compared over 30 days.
	smallSizes = 3
	// A question of a small organization should cost no more processor time than the reference, all questions together;
	// no single one more than mostOfOne.
	mostOfAll, mostOfOne = 1.0, 1.15
	// sizeWindow is the least time for which each side is measured in a turn, and sizeTurns the number of turns.
	sizeWindow = 400 * time.Millisecond
	sizeTurns  = 3
)

// measureSizes measures organizations of several sizes against the naive SQL on merged tables: the processor time of
// the engine and the server together, and the latency.
func (b *bench) measureSizes(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	for i, c := range b.world.sized() {
		asked := all
		if i < smallSizes {
			asked = monthly(all)
		}
		if err := b.measureSize(ctx, c, asked, i < smallSizes); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) measureSize(ctx context.Context, c class, asked []question, small bool) error {
	var ours, reference float64
	for _, q := range asked {
		a := b.inquiry(q, c.first())
		a.naiveSQL = strings.ReplaceAll(a.naiveSQL, "naive_", mergedPrefix)
		api, naive, err := b.processor(ctx, a.api, a.naive)
		if err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		if err := a.check(); err != nil {
			return err
		}
		name := fmt.Sprintf("%d runs: %s", c.size, q.title())
		b.report.add(ratio("sizes", name, "merged naive", api.latency, naive.latency, q.sizeGoal(small)))
		if api.processor == nil || naive.processor.Median == 0 { // in ticks of 10 ms
			continue
		}
		ours, reference = ours+api.processor.Median, reference+naive.processor.Median
		r := ratio("sizes, processor", name, "merged naive", api.processor, naive.processor, q.sizeGoal(small))
		b.report.add(r)
	}
	if reference > 0 && small {
		b.report.add(ratio("sizes, processor", fmt.Sprintf("%d runs: all questions", c.size), "merged naive",
			statsOf([]float64{ours}), statsOf([]float64{reference}), mostOfAll))
	}
	return nil
}

// sizeGoal is the greatest ratio of the question.
func (q question) sizeGoal(small bool) float64 {
	if small {
		return mostOfOne
	}
	return q.atMost
}

// A cost is what one request takes.
type cost struct {
	latency   *stats // ms
	processor *stats // ms of the engine and the server; nil where the system does not tell
}

// processor measures both sides in turns.
func (b *bench) processor(ctx context.Context, sides ...side) (ours, reference cost, err error) {
	latencies, times := make([][]float64, len(sides)), make([][]float64, len(sides))
	engine, err := b.engineProcess()
	if err != nil {
		return ours, reference, err
	}
	pids := []int{engine.PID, b.server.PID()}
	known := true
	for turn := -1; turn < sizeTurns; turn++ {
		for i, run := range sides {
			before, _ := processorTime(pids...)
			began, n := time.Now(), 0
			for ; n < 1 || turn >= 0 && (n < b.Repeat || time.Since(began) < min(sizeWindow, b.Budget)); n++ {
				start := time.Now()
				if err := run(ctx); err != nil {
					return ours, reference, err
				}
				if turn >= 0 {
					latencies[i] = append(latencies[i], milliseconds(time.Since(start)))
				}
			}
			after, ok := processorTime(pids...)
			known = known && ok
			if turn >= 0 {
				times[i] = append(times[i], milliseconds(after-before)/float64(n))
			}
		}
	}
	costs := make([]cost, len(sides))
	for i := range sides {
		costs[i].latency = statsOf(latencies[i])
		if known {
			costs[i].processor = statsOf(times[i])
		}
	}
	return costs[0], costs[1], nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
