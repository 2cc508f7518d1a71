package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/backoff"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
)

// cursorSecretPoll is how often a server reads the secrets that the store keeps. A new one is accepted by all servers
// long before it signs, after olap.CursorSecretDelay.
const cursorSecretPoll = time.Minute

// cursorSecrets are the given secrets, the one that signs first; none if the store keeps them.
func (c serveCmd) cursorSecrets() ([][]byte, error) {
	text, err := readSecret("--cursor-secret-file", c.CursorSecretFile, "RUNLENS_CURSOR_SECRET")
	if err != nil {
		return nil, err
	}
	var secrets [][]byte
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			secrets = append(secrets, []byte(line))
		}
	}
	if len(secrets) > 2 {
		return nil, usageError{
			fmt.Errorf("the cursor secret has %d lines: two at most, of which the first one signs", len(secrets)),
		}
	}
	for _, secret := range secrets {
		if len(secret) < minSecret {
			return nil, usageError{fmt.Errorf("every line of the cursor secret must have at least %d bytes", minSecret)}
		}
	}
	return secrets, nil
}

// followCursorSecrets gives the engine what the store keeps until ctx is done.
func followCursorSecrets(
	ctx context.Context, conn driver.Conn, engine *olap.Engine, every time.Duration, logger *slog.Logger,
) {
	failures := backoff.Failures{Logger: logger}
	for snapshot.Pause(ctx, every) == nil {
		var secrets [][]byte
		// An answer that is lost must not take the time within which all servers know a secret (olap.CursorSecretDelay).
		err := failure.Within(ctx, failure.Silence, func(ctx context.Context) (err error) {
			secrets, err = olap.CursorSecrets(ctx, conn)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures.Failed(ctx, slog.LevelWarn, "the cursor secrets could not be read again; those before stay", "error", err)
		default:
			failures.Succeeded(ctx, "the cursor secrets are read again")
			engine.UseCursorSecrets(secrets...)
		}
	}
}
