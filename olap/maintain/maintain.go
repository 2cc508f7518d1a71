// Package maintain keeps queries quick while the server runs: it works in steps, within a fraction of one core.
package maintain

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Task is work in small steps that nothing but speed depends on.
type Task interface {
	prometheus.Collector
	// Step does the next piece and reports whether there may be more to do at once. It ends with ctx, which has a
	// deadline.
	Step(ctx context.Context) (more bool, err error)
}

const (
	// stepLimit is the longest time of one step. The largest merges take minutes; what takes longer hangs.
	stepLimit = 10 * time.Minute
	// longestPause is the longest pause between two steps (of a task that is not idle for longer). The time of a step is a
	// bad measure of its work where the store was paused meanwhile, and maintenance must go on soon after that.
	longestPause = 30 * time.Second
	// mostOwed is the most rest that a step leaves to the pauses of later steps.
	mostOwed = 5 * time.Minute
)

// A Worker does one task. It is a prometheus.Collector, of the task's metrics too.
type Worker struct {
	name   string
	task   Task
	logger *slog.Logger
	share  float64
	idle   time.Duration

	seconds prometheus.Counter
	steps   prometheus.Counter
	failed  prometheus.Counter
}

// New returns a Worker for a task. share is the most part of the time that it takes, from 0 to 1 (both
// exclusive): a step that took a second is followed by a pause of nine seconds at a share of 0.1. No pause is longer
// than 30 s or idle, which is the pause when there is nothing to do: what is left of the rest, up to 5 minutes, is
// added to the pauses of later steps. A step that failed leaves nothing. A step ends after 10 minutes, as one that
// failed.
func New(name string, task Task, logger *slog.Logger, share float64, idle time.Duration) *Worker {
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: metric, Help: help,
			ConstLabels: prometheus.Labels{"task": name}})
	}
	return &Worker{
		name: name, task: task, logger: logger, share: share, idle: idle,
		seconds: counter("runlens_maintenance_seconds_total", "Time spent on maintenance."),
		steps:   counter("runlens_maintenance_steps_total", "Steps of maintenance."),
		failed:  counter("runlens_maintenance_failures_total", "Steps of maintenance that failed and are tried again."),
	}
}

// Run works until ctx is done. What fails is logged and tried again later.
func (w *Worker) Run(ctx context.Context) {
	var owed time.Duration // rest that is still to be taken
	for {
		began := time.Now()
		more, err := w.step(ctx)
		took := time.Since(began)
		w.steps.Inc()
		w.seconds.Add(took.Seconds())
		if ctx.Err() != nil {
			return
		}
		rest := time.Duration(float64(took) * (1 - w.share) / w.share)
		if err != nil {
			w.failed.Inc()
			w.logger.Warn("maintenance failed, trying again later", "task", w.name, "took", took.String(), "error", err)
			rest = min(rest, longestPause)
		}
		owed = min(owed+rest, mostOwed)
		pause := min(owed, longestPause)
		if !more || err != nil {
			pause = max(pause, w.idle)
		}
		owed = max(0, owed-pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (w *Worker) step(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return w.task.Step(ctx)
}

// Describe is part of prometheus.Collector.
func (w *Worker) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, out) }

// Collect is part of prometheus.Collector.
func (w *Worker) Collect(out chan<- prometheus.Metric) {
	w.seconds.Collect(out)
	w.steps.Collect(out)
	w.failed.Collect(out)
	w.task.Collect(out)
}
