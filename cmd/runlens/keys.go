package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/schema"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it, once."`
	List   keysListCmd   `cmd:"" help:"List an organization's keys, revoked ones included."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. It holds on every running server within 5 s."`
}

type keysCreateCmd struct {
	storeFlags
	Org    string `required:"" help:"The organization whose rows the key may read."`
	Name   string `default:"" help:"What the key is for."`
	Scopes string `default:"analytics:read" help:"Comma-separated scopes; an empty text makes a key without scopes."`
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (keysCreateCmd) Help() string {
	return "The key is shown this once; the store keeps only a hash of its secret.\n\nExample:\n  runlens keys create --org acme --name dashboard --output json"
}

// A createdKey is what keys create prints as JSON (contract 2).
type createdKey struct {
	KeyID          string   `json:"key_id"`
	Key            string   `json:"key"`
	OrganizationID string   `json:"organization_id"`
	Name           string   `json:"name"`
	Scopes         []string `json:"scopes"`
	CreatedAt      string   `json:"created_at"`
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
	return c.withKeys(ctx, logger, func(store keys.Store) error {
		text, credential := auth.NewKey()
		key := schema.APIKey{
			KeyID: credential.KeyID, SecretHash: credential.Hash, OrganizationID: organization,
			Name: c.Name, Scopes: scopes, CreatedAt: time.Now().UTC(),
		}
		if err := store.Put(ctx, key); err != nil {
			return err
		}
		if c.Output == "json" {
			return json.NewEncoder(io.out).Encode(createdKey{
				KeyID: key.KeyID, Key: text, OrganizationID: string(organization), Name: c.Name, Scopes: scopes, CreatedAt: instant(key.CreatedAt),
			})
		}
		_, err := fmt.Fprintf(io.out, "key:          %s\nkey id:       %s\norganization: %s\nscopes:       %s\nThe key is not shown again.\n",
			text, key.KeyID, organization, shownScopes(scopes))
		return err
	})
}

// parseScopes reads a comma-separated list of the scopes that exist.
func parseScopes(text string) ([]string, error) {
	scopes := []string{}
	for _, scope := range strings.Split(text, ",") {
		scope = strings.TrimSpace(scope)
		switch {
		case scope == "" || slices.Contains(scopes, scope):
		case scope == auth.ScopeAnalyticsRead:
			scopes = append(scopes, scope)
		default:
			return nil, fmt.Errorf("--scopes: there is no scope %q; there is %s", scope, auth.ScopeAnalyticsRead)
		}
	}
	return scopes, nil
}

type keysListCmd struct {
	storeFlags
	Org    string `required:"" help:"The organization."`
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (keysListCmd) Help() string { return "Example:\n  runlens keys list --org acme" }

// A listedKey is a key as keys list prints it as JSON, one object a line.
type listedKey struct {
	KeyID          string   `json:"key_id"`
	OrganizationID string   `json:"organization_id"`
	Name           string   `json:"name"`
	Scopes         []string `json:"scopes"`
	CreatedAt      string   `json:"created_at"`
	LastUsedAt     *string  `json:"last_used_at"` // to about an hour
	RevokedAt      *string  `json:"revoked_at"`
}

func (c keysListCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("--org %w", err)}
	}
	return c.withKeys(ctx, logger, func(store keys.Store) error {
		list, err := store.List(ctx, organization)
		if err != nil {
			return err
		}
		if c.Output == "json" {
			return printKeysJSON(io.out, list)
		}
		return printKeysText(io.out, list)
	})
}

func printKeysJSON(out io.Writer, list []keys.Listed) error {
	encoder := json.NewEncoder(out)
	for _, k := range list {
		line := listedKey{
			KeyID: k.KeyID, OrganizationID: string(k.OrganizationID), Name: k.Name, Scopes: k.Scopes,
			CreatedAt: instant(k.CreatedAt), LastUsedAt: optionalInstant(k.LastUsedAt), RevokedAt: optionalInstant(k.RevokedAt),
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func printKeysText(out io.Writer, list []keys.Listed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY ID\tNAME\tSCOPES\tCREATED\tLAST USED\tSTATE")
	for _, k := range list {
		used, state := "never", "valid"
		if k.LastUsedAt != nil {
			used = instant(*k.LastUsedAt)
		}
		if k.RevokedAt != nil {
			state = "revoked " + instant(*k.RevokedAt)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.KeyID, k.Name, shownScopes(k.Scopes), instant(k.CreatedAt), used, state)
	}
	return table.Flush()
}

type keysRevokeCmd struct {
	storeFlags
	KeyID string `arg:"" help:"The key's id, as keys list shows it."`
}

func (keysRevokeCmd) Help() string { return "Example:\n  runlens keys revoke 4fT9x0PqL2mVbN7c" }

func (c keysRevokeCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return c.withKeys(ctx, logger, func(store keys.Store) error {
		key, err := store.Revoke(ctx, c.KeyID)
		if errors.Is(err, keys.ErrUnknown) {
			return fmt.Errorf("there is no key with the id %q; 'runlens keys list --org ORG' shows the ids", c.KeyID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.out, "revoked %s of %s at %s\n", key.KeyID, key.OrganizationID, instant(*key.RevokedAt))
		return err
	})
}

func (f storeFlags) withKeys(ctx context.Context, logger *slog.Logger, do func(keys.Store) error) error {
	store, err := openMigrated(ctx, f, logger)
	if err != nil {
		return err
	}
	defer store.Close()
	return do(keys.NewStore(store.Conn()))
}

// instant is RFC 3339 in UTC with milliseconds.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func optionalInstant(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := instant(*t)
	return &text
}

func shownScopes(scopes []string) string {
	if len(scopes) == 0 {
		return "none"
	}
	return strings.Join(scopes, ", ")
}
