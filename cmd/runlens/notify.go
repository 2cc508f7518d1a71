package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/runlens/runlens/http/admin"
)

// tellManager tells the service manager, if one started this process and waits for it (sd_notify(3)), how far it is.
func tellManager(state string, logger *slog.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("the service manager cannot be told the state", "state", state, "error", err)
	}
}

// stopping tells the service manager that the service stops, when ctx is done. Its caller calls the returned function
// before it ends, which waits until that is told: a process that ends at once would take the message with it.
func stopping(ctx context.Context, logger *slog.Logger) (told func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		tellManager(daemon.SdNotifyStopping, logger)
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// managed tells the service manager that the service runs, and its watchdog twice within each of its intervals that the
// process still works, until ctx is done. A process whose admin address does not answer says nothing to the watchdog,
// which then ends it; whether the store answers is no matter of it. Without an admin address, nil, it is enough that
// the process runs.
func managed(ctx context.Context, server *admin.Server, logger *slog.Logger) {
	alive := func(context.Context) error { return nil }
	if server != nil {
		alive = func(ctx context.Context) error {
			address, err := reachable(server.Address())
			if err == nil {
				_, err = probe(ctx, address, "/healthz")
			}
			return err
		}
	}
	tellManager(daemon.SdNotifyReady, logger)
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("the watchdog of the service manager is not told anything", "error", err)
	}
	if interval > 0 {
		go watchdog(ctx, interval/2, alive, logger)
	}
}

// watchdog tells the watchdog every pause that the process works, as long as alive says so.
func watchdog(ctx context.Context, pause time.Duration, alive func(context.Context) error, logger *slog.Logger) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := alive(ctx); err == nil {
			tellManager(daemon.SdNotifyWatchdog, logger)
		} else if ctx.Err() == nil {
			logger.Error("the admin address does not answer, which the watchdog is not told", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
