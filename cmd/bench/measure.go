package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxRepeat bounds how often something short is measured.
const maxRepeat = 100

// Stats are what is reported of a number of measurements.
type stats struct {
	Median  float64 `json:"median"`
	P95     float64 `json:"-"`
	Samples int     `json:"samples"`
}

func statsOf(samples []float64) *stats {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	median := sorted[n/2]
	if n%2 == 0 {
		median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return &stats{median, sorted[int(math.Ceil(0.95*float64(n)))-1], n}
}

// relative are the measurements of several things, each as a multiple of the median of the same thing in reference.
func relative(measured, reference [][]float64) *stats {
	var all []float64
	for i, samples := range measured {
		median := statsOf(reference[i]).Median
		for _, sample := range samples {
			all = append(all, sample/median)
		}
	}
	return statsOf(all)
}

// A side is one of several that do the same work.
type side func(context.Context) error

// compare measures the sides in milliseconds at least b.Repeat times, one after the other in every round, so that
// whatever else the machine does hits all of them. All are run once beforehand, unmeasured.
func (b *bench) compare(ctx context.Context, sides ...side) ([]*stats, error) {
	samples := make([][]float64, len(sides))
	var began time.Time
	for round := -1; round < b.Repeat || (round < maxRepeat && time.Since(began) < b.Budget); round++ {
		if round == 0 {
			began = time.Now()
		}
		for i, run := range sides {
			start := time.Now()
			if err := run(ctx); err != nil {
				return nil, err
			}
			if took := time.Since(start); round >= 0 {
				samples[i] = append(samples[i], milliseconds(took))
			}
		}
	}
	measured := make([]*stats, len(sides))
	for i := range sides {
		measured[i] = statsOf(samples[i])
	}
	return measured, nil
}

// perSecond is how often a number of clients together get the work done in a second, within b.Window.
func (b *bench) perSecond(
	ctx context.Context, clients int, work func(ctx context.Context, n int) error,
) (float64, error) {
	began := time.Now()
	done, err := b.often(ctx, clients, work)
	return float64(done) / time.Since(began).Seconds(), err
}

// often is how often a number of clients together get the work done within b.Window.
func (b *bench) often(
	ctx context.Context, clients int, work func(ctx context.Context, n int) error,
) (int64, error) {
	var done atomic.Int64
	var wait sync.WaitGroup
	failed := make(chan error, clients)
	began := time.Now()
	for client := range clients {
		wait.Go(func() {
			for n := client; time.Since(began) < b.Window; n++ {
				if err := work(ctx, n); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return done.Load(), nil
	}
}
