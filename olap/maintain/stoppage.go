package maintain

import (
	"context"
	"time"
)

const (
	// probeEvery is how often a store is asked during a step whether it answers.
	probeEvery = 5 * time.Second
	// stoppedFrom is from which delay on the store, or this process, is taken to have been stopped. A busy store answers
	// sooner, as a rule.
	stoppedFrom = 3 * time.Second
)

// stoppage measures until ctx is done for how long the store did not answer, or this process did not run: a frozen
// store, a suspended machine. A step that waits for it does not work, and maintenance must go on soon after that.
func (w *Worker) stoppage(ctx context.Context) (stopped time.Duration) {
	for ctx.Err() == nil {
		began := time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery):
			_ = w.alive(ctx)
		}
		if late := time.Since(began) - probeEvery; late >= stoppedFrom {
			stopped += late
		}
	}
	return stopped
}
