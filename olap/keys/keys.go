// Package keys keeps API keys in the store.
package keys

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// ErrUnknown is returned when there is no key with an id.
var ErrUnknown = errors.New("there is no such key")

// A Store is the keys of one store. It is what http/auth verifies against.
type Store struct{ conn driver.Conn }

// NewStore returns the keys in the database of conn, in which the migrations have been applied.
func NewStore(conn driver.Conn) Store { return Store{conn} }

const columns = "key_id, organization_id, name, scopes, secret_hash, created_at, revoked_at, expires_at, networks"

// Revoke ends a key and returns it. Revoking it again keeps the first time. The error is ErrUnknown
// when there is no such key.
func (s Store) Revoke(ctx context.Context, keyID string) (schema.APIKey, error) {
	key, found, err := s.Find(ctx, keyID)
	if err != nil {
		return key, err
	}
	if !found {
		return key, ErrUnknown
	}
	if key.RevokedAt != nil {
		return key, nil
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	key.RevokedAt = &now
	return key, s.Put(ctx, key)
}

// Expire makes a key expire at an instant, unless it does so earlier, and returns it. The error is ErrUnknown when
// there is no such key.
func (s Store) Expire(ctx context.Context, keyID string, at time.Time) (schema.APIKey, error) {
	key, found, err := s.Find(ctx, keyID)
	if err != nil {
		return key, err
	}
	if !found {
		return key, ErrUnknown
	}
	if key.ExpiresAt != nil && !at.Before(*key.ExpiresAt) {
		return key, nil
	}
	at = at.UTC().Truncate(time.Millisecond)
	key.ExpiresAt = &at
	return key, s.Put(ctx, key)
}

// Put stores a key. Of the rows of a key a revoked one counts, and among the others the one that expires first,
// in whatever order they are stored.
func (s Store) Put(ctx context.Context, key schema.APIKey) error {
	scopes, err := key.StoredScopes()
	if err != nil {
		return err
	}
	return s.insert(ctx, schema.TableAPIKeys, columns, []any{
		key.KeyID, string(key.OrganizationID), key.Name, scopes, string(key.SecretHash[:]), key.CreatedAt,
		key.RevokedAt, key.ExpiresAt, texts(key.Networks)})
}

// Find returns the key with an id, revoked or not; false when there is none. How long it takes depends on whether
// there is one; callers of the API are answered by Valid.
func (s Store) Find(ctx context.Context, keyID string) (schema.APIKey, bool, error) {
	var key schema.APIKey
	found := sql.Select{
		Columns: []string{columns}, From: all(schema.TableAPIKeys).Final(true), Where: []string{"key_id = $1"},
	}
	err := scan(s.conn.QueryRow(ctx, found.String(), keyID), &key)
	if errors.Is(err, stdsql.ErrNoRows) {
		return schema.APIKey{}, false, nil
	}
	if err != nil {
		return schema.APIKey{}, false, fmt.Errorf("keys: find: %w", err)
	}
	return key, true, nil
}

// A Listed is a key with the time it was last used, to about an hour; nil for never.
type Listed struct {
	schema.APIKey
	LastUsedAt *time.Time
}

// List returns the keys of an organization, revoked ones included, oldest first.
func (s Store) List(ctx context.Context, organization schema.OrganizationID) ([]Listed, error) {
	// The ids are looked up first: the rest of the keys and their uses is read by id, and not of all organizations.
	ofThem := "key_id IN" + sql.In(sql.Select{Columns: []string{"key_id"}, From: sql.Table(schema.TableAPIKeys)})
	listed := sql.Select{
		Columns: []string{columns, "if(u.at = 0, NULL, u.at)"},
		From: sql.Query(sql.Select{
			Columns: []string{"*"}, From: sql.Table(schema.TableAPIKeys).Final(true), Where: []string{ofThem},
		}).As("k"),
		Joins: []sql.Join{{Kind: "LEFT", From: sql.Query(lastUses(ofThem)).As("u"), On: "USING (key_id)"}},
		Order: []string{"created_at", "key_id"},
	}
	rows, err := s.conn.Query(ctx, listed.String(), clickhouse.Named("organization", string(organization)))
	if err != nil {
		return nil, fmt.Errorf("keys: list: %w", err)
	}
	defer rows.Close()
	var list []Listed
	for rows.Next() {
		var listed Listed
		if err := scan(rows, &listed.APIKey, &listed.LastUsedAt); err != nil {
			return nil, fmt.Errorf("keys: list: %w", err)
		}
		list = append(list, listed)
	}
	return list, rows.Err()
}

func scan(row interface{ Scan(...any) error }, key *schema.APIKey, more ...any) error {
	var organization, hash string
	var scopes, networks []string
	err := row.Scan(append([]any{
		&key.KeyID, &organization, &key.Name, &scopes, &hash, &key.CreatedAt, &key.RevokedAt, &key.ExpiresAt, &networks,
	}, more...)...)
	if err != nil {
		return err
	}
	key.OrganizationID = schema.OrganizationID(organization)
	key.SetStoredScopes(scopes)
	copy(key.SecretHash[:], hash)
	key.Networks, err = prefixes(networks)
	return err
}

// insert adds rows and returns when they are stored.
func (s Store) insert(ctx context.Context, table, columns string, rows ...[]any) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+columns+")")
	for i := 0; i < len(rows) && err == nil; i++ {
		err = batch.Append(rows[i]...)
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		return fmt.Errorf("keys: write to %s: %w", table, err)
	}
	return nil
}
