// Package backoff says how long to wait before something that failed is tried again, and which failures are logged.
package backoff

import (
	"context"
	"log/slog"
	"time"
)

const (
	// shortestSilence and longestSilence bound the time between two lines of the log about the same trouble.
	shortestSilence = time.Minute
	longestSilence  = time.Hour
)

// Failures are those of one thing that is done again and again, since it last succeeded. One goroutine may use them.
type Failures struct {
	Logger *slog.Logger
	// First and Longest are the pause after the first failure and the longest one: pauses double. They are 0 for what
	// has a rhythm of its own.
	First, Longest time.Duration

	count int
	pause time.Duration
	since time.Time // of the first one
	due   time.Time // from when on one is logged
}

// Failed takes note of a failure and returns the pause before the next try. The first one is logged, and then one
// whenever the trouble has lasted twice as long as at the line before, an hour longer at most.
func (f *Failures) Failed(ctx context.Context, level slog.Level, message string, attributes ...any) time.Duration {
	now := time.Now()
	if f.count++; f.count == 1 {
		f.since, f.due = now, now
	}
	f.pause = min(max(2*f.pause, f.First), f.Longest)
	if !now.Before(f.due) {
		f.due = now.Add(min(max(now.Sub(f.since), shortestSilence), longestSilence))
		if attributes = append(attributes, "failures", f.count); f.pause > 0 {
			attributes = append(attributes, "pause", f.pause)
		}
		f.Logger.Log(ctx, level, message, attributes...)
	}
	return f.pause
}

// Succeeded ends a series of failures, and logs that it is over if there was one.
func (f *Failures) Succeeded(ctx context.Context, message string, attributes ...any) {
	if f.count > 0 {
		f.Logger.InfoContext(ctx, message, append(attributes, "failures", f.count,
			"after", time.Since(f.since).Round(time.Millisecond))...)
		f.count, f.pause = 0, 0
	}
}
