package clickhouse

import (
	"context"
	"errors"
	"time"
)

const (
	// checkInterval is how soon a death of an engine that another process started is noticed.
	checkInterval = 100 * time.Millisecond
	// minBackoff and maxBackoff bound the pause after a start that failed.
	minBackoff = 200 * time.Millisecond
	maxBackoff = 15 * time.Second
	// collectPatience bounds the wait for the exit status of a process whose lock is free.
	collectPatience = time.Second
)

// supervise starts the engine again whenever it has died, until ctx is done. The engine lock says so: it is free
// exactly when no engine lives, and of several supervisors one gets it. Only starts that fail make it pause.
func (e *engine) supervise(ctx context.Context) {
	defer close(e.stopped)
	pause := minBackoff
	for e.watch(ctx) {
		lock, err := tryLockExclusive(e.layout.engineLock())
		if lock == nil && err == nil {
			continue // it lives, or another supervisor starts the next one
		}
		if err == nil {
			e.reportDeath()
			err = e.restart(ctx, lock)
		}
		if err == nil {
			pause = minBackoff
			continue
		}
		if ctx.Err() == nil {
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

// watch waits until it is time to try the engine lock, and returns false when ctx is done. The death of a process that
// this one started is logged here, whoever starts the next one.
func (e *engine) watch(ctx context.Context) bool {
	var ended chan error
	if e.child != nil {
		ended = e.child.ended
	}
	select {
	case <-ctx.Done():
		return false
	case status := <-ended:
		e.childEnded(status)
	case <-time.After(checkInterval):
	}
	return true
}

// childEnded logs how the engine that this process started has ended.
func (e *engine) childEnded(status error) {
	if status == nil {
		status = errors.New("exit status 0")
	}
	e.logger.Warn("embedded engine died", "pid", e.child.pid, "status", status)
	e.child, e.reported = nil, e.child.pid
}

// reportDeath logs the death of the engine whose lock is free, unless that was done before. Its exit status is known to
// the process that started it alone.
func (e *engine) reportDeath() {
	if e.child != nil {
		select {
		case status := <-e.child.ended:
			e.childEnded(status)
		case <-time.After(collectPatience):
		}
	}
	a, err := e.layout.readAddress()
	if err == nil && a.PID != e.reported {
		e.logger.Warn("embedded engine is gone; it was another process that started it", "pid", a.PID)
		e.reported = a.PID
	}
}

func (e *engine) restart(ctx context.Context, lock *fileLock) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.start(ctx, lock)
}
