package keys

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// verificationSize is the size in bytes of what a look-up returns, filled with zeros. It is enough for the longest key:
// a hash, 64 characters of an organization (contract 3), scopes with a restriction, networks of at most 43 characters,
// an instant.
const verificationSize = 32 + 64 + 256 + schema.MaxRestrictionBytes + 48*schema.MaxKeyNetworks + 32

// lookup reads the column verification of the row of a key that counts. It does the same work and returns one row
// of the same size whether there is such a key or not (schema/decisions/key-lookup.md):
//
//  1. Nothing but the aggregate function names the id. A condition in WHERE would let the primary index skip the parts
//     and granules that cannot hold it, and so its time would reveal whether one does.
//  2. A revoked key has the same verification as one that does not exist: an empty one.
var lookup = sql.Select{
	Columns: []string{fmt.Sprintf("toFixedString(argMaxIf(verification, revision, key_id = {id:String}), %d)",
		verificationSize)},
	From: all(schema.TableAPIKeys),
}.String()

// all reads the keys of all organizations.
var all = sql.AllOrganizations("a key says whose it is, and who asks names one")

// Valid returns the key with an id if it is neither revoked nor expired at an instant; else the zero key, whose hash
// no secret has. Of the key it returns id, organization, scopes, hash and limits. The work is the same for
// every id (spec 5.3).
func (s Store) Valid(ctx context.Context, keyID string, at time.Time) (schema.APIKey, error) {
	var verification string
	if err := s.conn.QueryRow(ctx, lookup, clickhouse.Named("id", keyID)).Scan(&verification); err != nil {
		return schema.APIKey{}, fmt.Errorf("keys: look up: %w", err)
	}
	return parseVerification(keyID, verification, at)
}

// parseVerification reads what the column verification packs: the hash, and by lines the organization, the scopes, the
// networks and the expiry in milliseconds. One that is empty or all zeros, or expired at an instant, is the zero key.
func parseVerification(keyID, text string, at time.Time) (schema.APIKey, error) {
	key := schema.APIKey{KeyID: keyID}
	if copy(key.SecretHash[:], text) < len(key.SecretHash) {
		return schema.APIKey{}, nil
	}
	fields := strings.Split(strings.TrimRight(text[len(key.SecretHash):], "\x00"), "\n")
	if len(fields) != 4 {
		return schema.APIKey{}, nil
	}
	var err error
	// A clone: who keeps the organization of many keys keeps nothing else of their rows.
	key.OrganizationID = schema.OrganizationID(strings.Clone(fields[0]))
	key.SetStoredScopes(split(fields[1]))
	if key.Networks, err = prefixes(split(fields[2])); err != nil || fields[3] == "" {
		return key, err
	}
	millis, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return schema.APIKey{}, fmt.Errorf("keys: a stored expiry cannot be read: %w", err)
	}
	expires := time.UnixMilli(millis).UTC()
	if !at.Before(expires) {
		return schema.APIKey{}, nil
	}
	key.ExpiresAt = &expires
	return key, nil
}

// lastUses are when each key was last used, of those for which conditions are true.
func lastUses(where ...string) sql.Select {
	return sql.Select{
		Columns: []string{"key_id", "max(last_used_at) AS at"},
		From:    all(schema.TableAPIKeyUses), Where: where, Group: []string{"key_id"},
	}
}

var usedSince = sql.Select{
	Columns: []string{"k.key_id", "k.verification", "u.at"},
	From: sql.Query(sql.Select{
		Columns: []string{"key_id", "verification"}, From: all(schema.TableAPIKeys).Final(true),
	}).As("k"),
	Joins: []sql.Join{{Kind: "INNER", From: sql.Query(lastUses()).As("u"), On: "ON u.key_id = k.key_id"}},
	Where: []string{"k.verification != ''", "u.at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')"},
}.String()

// Used passes on the keys that verified at or after since and are valid at an instant. Of each key it has what Valid
// returns.
func (s Store) Used(ctx context.Context, since, at time.Time, each func(schema.APIKeyUse)) error {
	rows, err := s.conn.Query(ctx, usedSince, clickhouse.Named("since", since.UnixMilli()))
	if err != nil {
		return fmt.Errorf("keys: read uses: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var keyID, verification string
		var last time.Time
		if err := rows.Scan(&keyID, &verification, &last); err != nil {
			return fmt.Errorf("keys: read uses: %w", err)
		}
		key, err := parseVerification(keyID, verification, at)
		if err != nil {
			return err
		}
		if key.KeyID != "" {
			each(schema.APIKeyUse{APIKey: key, LastUsedAt: last})
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("keys: read uses: %w", err)
	}
	return nil
}

// RecordUses keeps when keys verified, by their ids, in one insert.
func (s Store) RecordUses(ctx context.Context, uses map[string]time.Time) error {
	rows := make([][]any, 0, len(uses))
	for keyID, at := range uses {
		rows = append(rows, []any{keyID, at})
	}
	return s.insert(ctx, schema.TableAPIKeyUses, "key_id, last_used_at", rows...)
}

// split reads parts that are joined by commas; an empty text has none.
func split(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

func prefixes(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			// A key whose networks cannot be read must not be valid everywhere.
			return nil, fmt.Errorf("keys: a stored network cannot be read: %w", err)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func texts(networks []netip.Prefix) []string {
	texts := make([]string, len(networks))
	for i, network := range networks {
		texts[i] = network.String()
	}
	return texts
}
