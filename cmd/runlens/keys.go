package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/schema"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it, once."`
	List   keysListCmd   `cmd:"" help:"List an organization's keys, revoked ones included."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key by a new one. Both are valid for a while."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key on every running server, within 5 s."`

	RotateCursorSecret rotateCursorSecrets `cmd:"" help:"Replace the cursor secret that the store keeps."`
}

func (keysCmd) Help() string {
	return `Example:
  runlens keys create --org acme --name dashboard
  runlens keys list --org acme`
}

type keysCreateCmd struct {
	storeFlags
	Org      string   `required:"" help:"The organization whose rows the key may read."`
	Name     string   `default:"" help:"What the key is for."`
	Scopes   string   `default:"analytics:read" help:"@key_scopes"`
	Expires  string   `placeholder:"WHEN" help:"@key_expires"`
	Networks []string `placeholder:"NETWORK" help:"@key_networks"`
	narrowFlags
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (keysCreateCmd) Help() string {
	return `The key is shown only this once. The store keeps a hash of its secret.

--agent, --person, --domain, --days and --min-people make a key that sees less than the organization: rows that each
of them lets through.

Example:
  runlens keys create --org acme --name dashboard --expires 90d --output json
  runlens keys create --org acme --name customer --domain example.com --days 90`
}

func (c keysCreateCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("--org %w", err)}
	}
	scopes, err := parseScopes(c.Scopes)
	if err != nil {
		return usageError{err}
	}
	now := time.Now().UTC()
	expires, err := parseExpiry(c.Expires, now)
	if err != nil {
		return usageError{fmt.Errorf("--expires: %w", err)}
	}
	networks, err := parseKeyNetworks(c.Networks)
	if err != nil {
		return usageError{fmt.Errorf("--networks: %w", err)}
	}
	restriction, err := c.restriction(scopes)
	if err != nil {
		return usageError{err}
	}
	text, key := newKey(schema.APIKey{
		OrganizationID: organization, Name: c.Name, Scopes: scopes, CreatedAt: now,
		KeyLimits: schema.KeyLimits{ExpiresAt: expires, Networks: networks, Restriction: restriction},
	})
	err = c.withKeysOf(ctx, organization, changing, logger, func(store keys.Store, conn driver.Conn) error {
		err := audit.Do(ctx, conn, actionOn("keys create", key), func(ctx context.Context) error {
			return store.Put(ctx, key)
		})
		if err == nil {
			noteNoRuns(ctx, conn, organization, io.err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return printCreated(io, c.Output, text, key, nil)
}

// newKey gives a key an id and a secret, and returns its text.
func newKey(key schema.APIKey) (string, schema.APIKey) {
	text, credential := auth.NewKey()
	key.KeyID, key.SecretHash = credential.KeyID, credential.Hash
	return text, key
}

type keysRotateCmd struct {
	storeFlags
	KeyID   string `arg:"" help:"The id of the key to replace, as keys list shows it."`
	Overlap string `default:"24h" placeholder:"DURATION" help:"@overlap_key"`
	Expires string `placeholder:"WHEN" help:"@rotated_expires"`
	Output  string `enum:"json,text" default:"text" help:"json or text."`
}

func (keysRotateCmd) Help() string {
	return `The new key has the organization, name, scopes, networks and restriction of the key that it replaces.

Example:
  runlens keys rotate 4fT9x0PqL2mVbN7c --overlap 7d`
}

func (c keysRotateCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	now := time.Now().UTC()
	end, err := parseOverlap(c.Overlap, now)
	if err != nil {
		return usageError{fmt.Errorf("--overlap: %w", err)}
	}
	expires, err := parseExpiry(c.Expires, now)
	if err != nil {
		return usageError{fmt.Errorf("--expires: %w", err)}
	}
	text, credential := auth.NewKey()
	var key, old schema.APIKey
	again := false // in the cell to which the organization was moved meanwhile
	err = c.withKey(ctx, c.KeyID, logger, func(store keys.Store, conn driver.Conn, found schema.APIKey) (err error) {
		switch old = found; {
		case again:
		case old.RevokedAt != nil || old.ExpiresAt != nil && !now.Before(*old.ExpiresAt):
			return fmt.Errorf("the key is no longer valid: %s; 'runlens keys create' makes a new one", stateOf(old, now))
		case old.ExpiresAt != nil && expires == nil:
			return usageError{errors.New("the key expires: say with --expires when the new one does")}
		}
		again = true
		key = old
		key.CreatedAt, key.ExpiresAt = now, expires
		key.KeyID, key.SecretHash = credential.KeyID, credential.Hash
		action := actionOn("keys rotate", key)
		action.Details["rotated_key_id"] = old.KeyID
		return audit.Do(ctx, conn, action, func(ctx context.Context) error {
			// The new key first: after a stop in between, the old one works as before, and nobody has the new one.
			if err := store.Put(ctx, key); err != nil {
				return err
			}
			old, err = store.Expire(ctx, old.KeyID, end)
			return err
		})
	})
	if err != nil {
		return err
	}
	return printCreated(io, c.Output, text, key, &old)
}

type rotateCursorSecrets struct{ storeFlags }

func (rotateCursorSecrets) Help() string {
	return `No restart is needed. Every running server accepts the new secret before any of them signs with it.
Cursors of the old secret are accepted until the next rotation.
Servers with RUNLENS_CURSOR_SECRET or --cursor-secret-file don't use the secret that the store keeps.

Example:
  runlens keys rotate-cursor-secret`
}

func (c rotateCursorSecrets) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return c.eachStore(ctx, logger, io, func(_ storeFlags, store *clickhouse.Server) error {
		conn := store.Conn()
		var from time.Time
		err := audit.Do(ctx, conn, audit.Action{Name: "keys rotate-cursor-secret"}, func(ctx context.Context) (err error) {
			from, err = olap.RotateCursorSecret(ctx, conn)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.out, "the new secret signs from %s on\n", instant(from))
		return err
	})
}

// withKey changes a key that exists, in its store.
func (f storeFlags) withKey(
	ctx context.Context, keyID string, logger *slog.Logger, do func(keys.Store, driver.Conn, schema.APIKey) error,
) error {
	p, stores, leave, err := f.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	organization, found, err := ownerOf(ctx, stores, keyID)
	if err != nil {
		return err
	}
	unknown := fmt.Errorf("there is no key with the id %q; 'runlens keys list --org ORG' shows the ids", keyID)
	if !found {
		return unknown
	}
	return p.inCellOf(ctx, organization, changing, logger, func(store *clickhouse.Server) error {
		kept := keys.NewStore(store.Conn())
		key, found, err := kept.Find(ctx, keyID)
		if err != nil {
			return err
		}
		if !found {
			return unknown
		}
		return do(kept, store.Conn(), key)
	})
}

// ownerOf is the organization of a key. While that is being moved two stores have the key.
func ownerOf(ctx context.Context, stores []*clickhouse.Server, keyID string) (
	organization schema.OrganizationID, found bool, err error,
) {
	for _, store := range stores {
		key, found, err := keys.NewStore(store.Conn()).Find(ctx, keyID)
		if err != nil || found {
			return key.OrganizationID, found, err
		}
	}
	return "", false, nil
}

// withKeysOf does something with the keys of an organization.
func (f storeFlags) withKeysOf(
	ctx context.Context, organization schema.OrganizationID, how use, logger *slog.Logger,
	do func(keys.Store, driver.Conn) error,
) error {
	return f.inCellOf(ctx, organization, how, logger, func(store *clickhouse.Server) error {
		return do(keys.NewStore(store.Conn()), store.Conn())
	})
}
