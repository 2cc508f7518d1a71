package main

import (
	"log/slog"
	"time"
)

// remindAfter is how long a change of the store goes on before a line says that it does. Each further line comes when
// it has lasted twice as long.
const remindAfter = 30 * time.Second

// remind logs that something takes long, which may wait for ClickHouse without end, until the caller calls stop.
func remind(logger *slog.Logger, what string) (stop func()) {
	ended := make(chan struct{})
	go func() {
		began := time.Now()
		for after := remindAfter; ; after *= 2 {
			select {
			case <-ended:
				return
			case <-time.After(time.Until(began.Add(after))):
				logger.Info(what+" goes on; 'runlens doctor' names what does not end in ClickHouse", "for", after)
			}
		}
	}()
	return func() { close(ended) }
}
