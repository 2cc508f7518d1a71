package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// While rows arrive, the median of the questions should take mostWhileArriving of the quiet median, and the 95th
	// percentile mostP95WhileArriving of the quiet one.
	mostWhileArriving, mostP95WhileArriving = 1.3, 2.5
	// arrivalWindows is how many times --window the load lasts while rows arrive, half of it before and half after that:
	// rows come in every second and are refreshed and merged every few, and a machine may be slow for a minute.
	arrivalWindows = 20

	// mostExtraCores is what refreshing may cost, in cores.
	mostExtraCores = 0.20
	// cpuWindows is how many times --window the processor time is observed: merges come in bursts.
	cpuWindows = 3
)

// measureArrivals sends a mixed load while rows arrive, and before and after that, so that a machine that gets slower
// or quicker meanwhile hits both sides.
func (b *bench) measureArrivals(ctx context.Context) error {
	streams, err := b.mixedLoad(ctx)
	if err != nil {
		return err
	}
	feed := &arrivals{bench: b, rate: b.Rate, classes: []class{b.world.large, b.world.small}}
	if err := feed.prepare(ctx); err != nil {
		return err
	}
	b.rest(ctx)
	const long, short = arrivalWindows, arrivalWindows / 2
	before, err := ask(ctx, streams, short*b.Window)
	if err != nil {
		return err
	}
	stop := feed.start(ctx)
	busy, err := ask(ctx, streams, long*b.Window)
	arrived, feedErr := stop()
	if err != nil {
		return err
	}
	if feedErr != nil {
		return fmt.Errorf("arriving rows: %w", feedErr)
	}
	if err := b.maintained(ctx, "the last rows arrived"); err != nil {
		return err
	}
	after, err := ask(ctx, streams, short*b.Window)
	if err != nil {
		return err
	}
	for k, s := range streams {
		b.reportStream(s, busy[k], before[k].and(after[k]))
	}
	b.report.Notes.Add("arrivals: %d rows a second were requested, %.0f arrived", b.Rate, arrived)
	return b.measureCores(ctx, feed)
}

// reportStream compares what the questions of a stream took while rows arrived with the same in quiet.
func (b *bench) reportStream(s stream, busy, quiet times) {
	for i, q := range s.asked {
		b.report.add(comparison("arrivals", s.name+": "+q.title(), "quiet", statsOf(busy[i]), statsOf(quiet[i])))
	}
	ours, reference := relative(busy, quiet), relative(quiet, quiet)
	all := ratio("arrivals", s.name+": all questions", "quiet", ours, reference, mostWhileArriving)
	late := ratio("arrivals", s.name+": all questions, 95th percentile", "quiet", statsOf([]float64{ours.P95}),
		statsOf([]float64{reference.P95}), mostP95WhileArriving)
	all.Unit, late.Unit = "of quiet", "of quiet"
	b.report.add(all, late)
}

// measureCores observes how much processor time the engine and the server take while rows arrive and nobody
// queries anything: into our tables, and into the naive ones. What ours cost beyond those is an upper bound of
// what refreshing costs.
func (b *bench) measureCores(ctx context.Context, feed *arrivals) error {
	engine, err := b.engineProcess()
	if err != nil {
		return err
	}
	var cores [2]float64
	for i, naive := range []bool{false, true} {
		feed.naive = naive
		b.rest(ctx)
		before, known := processorTime(engine.PID, b.server.PID())
		if !known {
			b.report.Notes.Add("arrivals: this system does not report the processor time of a process")
			return nil
		}
		began := time.Now()
		stop := feed.start(ctx)
		select {
		case <-time.After(cpuWindows * b.Window):
		case <-ctx.Done():
		}
		if _, err := stop(); err != nil {
			return fmt.Errorf("arriving rows: %w", err)
		}
		after, _ := processorTime(engine.PID, b.server.PID())
		cores[i] = (after - before).Seconds() / time.Since(began).Seconds()
	}
	r := result{Scenario: "arrivals", Name: fmt.Sprintf("cores used by %d rows a second", b.Rate), Unit: "cores",
		Ours: statsOf(cores[:1]), Against: "naive", Reference: statsOf(cores[1:]), Measured: cores[0] - cores[1],
		Note: "(the difference, an upper bound of what refreshing costs)"}
	b.report.add(r.goal(fmt.Sprintf("at most %.2f more", mostExtraCores), r.Measured <= mostExtraCores))
	return nil
}
