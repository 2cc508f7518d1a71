package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/schema"
)

// fullDiskTries is how often a revocation is tried again once space was freed for it.
const fullDiskTries = 5

type keysRevokeCmd struct {
	storeFlags
	KeyID string `arg:"" help:"The key's id, as keys list shows it."`
}

func (keysRevokeCmd) Help() string {
	return `A revocation can't be rolled back. Revoking a key again changes nothing. It works on a full disk of the
embedded engine too, which keeps 8 MiB for it.

Example:
  runlens keys revoke 4fT9x0PqL2mVbN7c`
}

// Run revokes the key, on a full disk of the embedded engine with the space that is kept in reserve for it.
func (c keysRevokeCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	err := c.revoke(ctx, logger, io)
	if !diskFull(err) {
		return err
	}
	if c.ClickhouseURL == "" {
		released, failed := clickhouse.ReleaseReserve(c.DataDir)
		if failed != nil {
			logger.Warn("the space in reserve could not be freed", "error", failed)
		}
		if released {
			logger.Warn("the disk is full; revoking with the space that was kept in reserve for this")
		}
		// What else waits for space may take some of it.
		for try := 0; released && diskFull(err) && try < fullDiskTries; try++ {
			err = c.revoke(ctx, logger, io)
		}
		if !diskFull(err) {
			return err
		}
	}
	return fmt.Errorf("the disk of ClickHouse is full, and the key %s may still be valid: free some space and run this "+
		"again; until then only stopping the servers ends it", c.KeyID)
}

func (c keysRevokeCmd) revoke(ctx context.Context, logger *slog.Logger, io streams) error {
	var key schema.APIKey
	err := c.withKey(ctx, c.KeyID, logger, func(store keys.Store, conn driver.Conn, found schema.APIKey) error {
		return audit.Do(ctx, conn, actionOn("keys revoke", found), func(ctx context.Context) (err error) {
			key, err = store.Revoke(ctx, c.KeyID)
			return err
		})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "revoked %s of %s at %s\n", key.KeyID, key.OrganizationID, instant(*key.RevokedAt))
	return err
}
