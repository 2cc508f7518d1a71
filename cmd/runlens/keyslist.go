package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/schema"
)

type keysListCmd struct {
	storeFlags
	Org    string `required:"" help:"The organization."`
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (keysListCmd) Help() string {
	return `Shows name, scopes, what it sees, networks, last use (to about an hour) and state of each key. Never a secret.

Example:
  runlens keys list --org acme
  runlens keys list --org acme --output json`
}

// A listedKey is a key as keys list prints it as JSON, one object a line.
type listedKey struct {
	KeyID          string   `json:"key_id"`
	OrganizationID string   `json:"organization_id"`
	Name           string   `json:"name"`
	Scopes         []string `json:"scopes"`
	CreatedAt      string   `json:"created_at"`
	LastUsedAt     *string  `json:"last_used_at"` // to about an hour
	RevokedAt      *string  `json:"revoked_at"`
	ExpiresAt      *string  `json:"expires_at"`
	Networks       []string `json:"networks"` // null for everywhere

	Restriction *shownRestriction `json:"restriction"` // null for all rows of the organization
}

func (c keysListCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("--org %w", err)}
	}
	return c.withKeysOf(ctx, organization, reading, logger, func(store keys.Store, _ driver.Conn) error {
		list, err := store.List(ctx, organization)
		if err != nil {
			return err
		}
		if c.Output == "json" {
			return printKeysJSON(io.out, list)
		}
		return printKeysText(io.out, list, time.Now())
	})
}

func printKeysJSON(out io.Writer, list []keys.Listed) error {
	return printObjects(out, list, func(k keys.Listed) listedKey {
		return listedKey{
			KeyID: k.KeyID, OrganizationID: string(k.OrganizationID), Name: k.Name, Scopes: k.Scopes,
			CreatedAt: instant(k.CreatedAt), LastUsedAt: optionalInstant(k.LastUsedAt), RevokedAt: optionalInstant(k.RevokedAt),
			ExpiresAt: optionalInstant(k.ExpiresAt), Networks: shownNetworks(k.Networks),
			Restriction: showRestriction(k.Restriction),
		}
	})
}

func printKeysText(out io.Writer, list []keys.Listed, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY ID\tNAME\tSCOPES\tSEES\tNETWORKS\tCREATED\tLAST USED\tSTATE")
	for _, k := range list {
		used := "never"
		if k.LastUsedAt != nil {
			used = instant(*k.LastUsedAt)
		}
		networks := cmp.Or(strings.Join(shownNetworks(k.Networks), ", "), "all")
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			k.KeyID, output.Printable(k.Name), shownScopes(k.Scopes), restrictionInWords(k.Restriction), networks,
			instant(k.CreatedAt), used, stateOf(k.APIKey, now))
	}
	return table.Flush()
}

// stateOf says in words whether a key is valid.
func stateOf(k schema.APIKey, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + instant(*k.RevokedAt)
	case k.ExpiresAt == nil:
		return "valid"
	case now.Before(*k.ExpiresAt):
		return "valid until " + instant(*k.ExpiresAt)
	default:
		return "expired " + instant(*k.ExpiresAt)
	}
}
