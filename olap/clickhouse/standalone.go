package clickhouse

import (
	"context"
	"fmt"
	"io"
	"time"
)

// RunStandalone keeps the embedded engine of config.DataDir running until ctx is done, as any other of
// its users would. It calls running when the engine answers, and prints to stdout how to reach it: address, user and
// the file of the password, never the password. HTTP's basic authentication with these two is all a client elsewhere
// needs, as in an http:// URL; without it the port answers nothing. It prints them again when the engine had to be
// started again and listens elsewhere. The engine outlives it while other processes use it.
func RunStandalone(ctx context.Context, config Config, stdout io.Writer, running func()) error {
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	e, err := openEngine(ctx, config)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("embedded engine: %w", err)
	}
	defer e.close()
	running()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	printed := ""
	for {
		if a, err := e.layout.readAddress(); err == nil && a.Addr != printed {
			if _, err := fmt.Fprintf(stdout, "address: http://%s\nuser: %s\npassword file: %s\n", a.Addr, dataUser,
				e.layout.password()); err != nil {
				return err
			}
			printed = a.Addr
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
