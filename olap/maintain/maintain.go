// Package maintain keeps queries quick while the server runs: it works in steps, within a share of one core.
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
	// Step does the next piece and reports whether there may be more to do at once.
	Step(ctx context.Context) (more bool, err error)
}

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
// exclusive): a step that took a second is followed by a pause of nine seconds at a share of 0.1. idle is the
// pause when there is nothing to do.
func New(name string, task Task, logger *slog.Logger, share float64, idle time.Duration) *Worker {
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: metric, Help: help, ConstLabels: prometheus.Labels{"task": name}})
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
	for {
		pause := w.idle
		began := time.Now()
		more, err := w.task.Step(ctx)
		took := time.Since(began)
		w.steps.Inc()
		w.seconds.Add(took.Seconds())
		rest := time.Duration(float64(took) * (1 - w.share) / w.share)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.failed.Inc()
			w.logger.Warn("maintenance failed, trying again later", "task", w.name, "error", err)
		case more:
			pause = rest
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause, rest)):
		}
	}
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
