package clickhouse

import (
	"context"
	"time"
)

const (
	// checkInterval is how soon a death of the engine is noticed.
	checkInterval = 100 * time.Millisecond
	// minBackoff and maxBackoff bound the pause before another start after a failed or a short-lived one.
	minBackoff = 200 * time.Millisecond
	maxBackoff = 15 * time.Second
	// healthyAfter is how long an engine must have lived for its death to count as the first one.
	healthyAfter = 30 * time.Second
)

// supervise starts the engine again whenever it has died, until ctx is done. The engine lock says so: it is free
// exactly when no engine lives, and of several supervisors one gets it.
func (e *engine) supervise(ctx context.Context) {
	defer close(e.stopped)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	pause, started := minBackoff, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lock, err := tryLockExclusive(e.layout.engineLock())
		if lock == nil && err == nil {
			continue // it lives
		}
		if time.Since(started) > healthyAfter {
			pause = minBackoff
		}
		if err == nil {
			e.logger.Warn("embedded engine died; starting it again")
			started = time.Now()
			err = e.restart(ctx, lock)
		}
		if err != nil && ctx.Err() == nil {
			e.logger.Error("embedded engine could not be started", "error", err, "next_try_in", pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxBackoff)
	}
}

func (e *engine) restart(ctx context.Context, lock *fileLock) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.start(ctx, lock)
}
