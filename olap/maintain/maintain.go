// Package maintain keeps queries quick while the server runs: it works in steps, within a fraction of one core.
package maintain

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/backoff"
)

// A Task is work in small steps that nothing but speed depends on.
type Task interface {
	prometheus.Collector
	// Step does the next piece and reports whether there may be more to do at once. It ends with ctx, which has a
	// deadline.
	Step(ctx context.Context) (more bool, err error)
	// Did is what the last step did, or failed to do, of the kinds of work that the task has. It is empty where there was
	// nothing to do, or the step failed before it found out.
	Did() string
}

const (
	// stepLimit is the longest time of one step. The largest merges take minutes; what takes longer hangs.
	stepLimit = 10 * time.Minute
	// longestPause is the longest pause after steps that failed, and after any other as long as no more than mostOwed is
	// left of the rest (of a task that is not idle for longer).
	longestPause = 30 * time.Second
	// mostOwed is the most rest that a step leaves to the pauses of later steps.
	mostOwed = 5 * time.Minute
	// mostRest is the most rest of a step: longer than any process runs.
	mostRest = 100 * 365 * 24 * time.Hour
)

// A Worker does one task.
type Worker struct {
	prometheus.Collector // of its metrics and the task's

	name   string
	task   Task
	logger *slog.Logger
	share  float64
	idle   time.Duration
	alive  func(context.Context) error

	hurried float64                    // share of urgent steps
	urgent  func(context.Context) bool // nil where none is

	seconds prometheus.Counter
	steps   prometheus.Counter
	failed  prometheus.Counter
}

// New returns a Worker for a task. share is the most part of the time that it takes, from 0 to 1 (both exclusive),
// whatever a step takes: one of a second is followed by a pause of nine seconds at a share of 0.1. What is over 30 s of
// that is added to the pauses of later steps, up to 5 minutes, and paused at once from there on. idle is the pause when
// there is nothing to do. After steps that failed pauses double from that to 30 s. A step ends after 10 minutes, as one
// that failed.
//
// alive returns when the store answers, or with its context. The time in which it does not is not a step's (stoppage).
func New(
	name string, task Task, logger *slog.Logger, share float64, idle time.Duration, alive func(context.Context) error,
) *Worker {
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: metric, Help: help,
			ConstLabels: prometheus.Labels{"task": name}})
	}
	w := &Worker{
		name: name, task: task, logger: logger, share: share, idle: idle, alive: alive,
		seconds: counter("runlens_maintenance_seconds_total", "Time spent on maintenance."),
		steps:   counter("runlens_maintenance_steps_total", "Steps of maintenance."),
		failed:  counter("runlens_maintenance_failures_total", "Steps of maintenance that failed and are tried again."),
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(w.seconds, w.steps, w.failed, task)
	w.Collector = metrics
	return w
}

// Hurry has urgent steps take a share of their own, from 0 to 1 (both exclusive), and returns w. urgent reports whether
// the next step is one, and ends with its context. They are not kept waiting for the rest that other steps are owed:
// within 30 s it is seen that there is one.
func (w *Worker) Hurry(share float64, urgent func(context.Context) bool) *Worker {
	w.hurried, w.urgent = share, urgent
	return w
}

// Run works until ctx is done. What fails is logged and tried again later.
func (w *Worker) Run(ctx context.Context) {
	failures := backoff.Failures{Logger: w.logger, First: w.idle, Longest: max(w.idle, longestPause)}
	failing := map[string]bool{}     // kinds of work, which a step that does something else says nothing of
	var others, urgent time.Duration // rest that steps are still owed
	for hurries := w.hurries(ctx); ctx.Err() == nil; {
		more, took, err := w.step(ctx)
		w.steps.Inc()
		w.seconds.Add(took.Seconds())
		if ctx.Err() != nil {
			return
		}
		share, owed := w.share, &others
		if hurries {
			share, owed = w.hurried, &urgent
		}
		// A share may be so small that no Duration is as long.
		rest, failed := time.Duration(min(float64(took)*(1-share)/share, float64(mostRest))), time.Duration(0)
		did := w.task.Did()
		if err != nil {
			w.failed.Inc()
			failing[did] = true
			failed = failures.Failed(ctx, slog.LevelWarn, "maintenance failed, trying again later", "task", w.name,
				"took", took, "error", err)
			rest = min(rest, longestPause)
		} else {
			delete(failing, did)
			delete(failing, "") // it found out what there is to do
			if len(failing) == 0 {
				failures.Succeeded(ctx, "maintenance works again", "task", w.name)
			}
		}
		*owed += rest
		pause := max(min(*owed, longestPause), *owed-mostOwed, failed)
		if !more {
			pause = max(pause, w.idle)
		}
		var paused time.Duration
		paused, hurries = w.pause(ctx, pause, hurries)
		*owed = max(0, *owed-paused)
	}
}

// hurries reports whether the next step is urgent. Where the store does not say so for as long as the longest pause, it
// is not.
func (w *Worker) hurries(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, longestPause)
	defer cancel()
	return w.urgent != nil && w.urgent(ctx)
}

// pause pauses, after a step that was not urgent until the next one is, and returns for how long and whether it is.
func (w *Worker) pause(ctx context.Context, pause time.Duration, wasUrgent bool) (paused time.Duration, hurries bool) {
	for {
		some := pause - paused
		if !wasUrgent {
			some = min(some, longestPause)
		}
		select {
		case <-ctx.Done():
			return paused, false
		case <-time.After(some):
		}
		paused += some
		if hurries = w.hurries(ctx); paused >= pause || hurries {
			return paused, hurries
		}
	}
}

// step does a step and returns what it took, without the time in which nothing was done.
func (w *Worker) step(ctx context.Context) (more bool, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	began := time.Now()
	watched, done := context.WithCancel(ctx)
	stopped := make(chan time.Duration, 1)
	go func() { stopped <- w.stoppage(watched) }()
	more, err = w.task.Step(ctx)
	done()
	return more, max(0, time.Since(began)-<-stopped), err
}
