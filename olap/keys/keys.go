// Package keys keeps API keys in the store.
package keys

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/schema"
)

// ErrUnknown is returned when there is no key with an id.
var ErrUnknown = errors.New("there is no such key")

// A Store is the keys of one store. It satisfies auth.Store.
type Store struct{ conn driver.Conn }

// NewStore returns the keys in the database of conn, in which the migrations have been applied.
func NewStore(conn driver.Conn) Store { return Store{conn} }

// Key ids are stored as they are given out; only a hash of the secret is.
const (
	columns = "key_id, organization_id, name, scopes, secret_hash, created_at, revoked_at"
	read    = "SELECT " + columns + " FROM " + schema.TableAPIKeys + " FINAL "
)

// Create makes and stores a key and returns its text, which is kept nowhere.
func (s Store) Create(ctx context.Context, organization schema.OrganizationID, name string, scopes []string) (string, auth.Key, error) {
	text, credential := auth.NewKey()
	key := auth.Key{
		KeyID: credential.KeyID, OrganizationID: organization, Name: name, Scopes: scopes,
		Hash: credential.Hash, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	return text, key, s.put(ctx, key)
}

// Revoke ends a key and returns it. Revoking it again keeps the first time. The error is ErrUnknown
// when there is no such key.
func (s Store) Revoke(ctx context.Context, keyID string) (auth.Key, error) {
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
	return key, s.put(ctx, key)
}

// put adds a row; of the rows of a key the revoked one counts.
func (s Store) put(ctx context.Context, key auth.Key) error {
	batch, err := s.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0})),
		"INSERT INTO "+schema.TableAPIKeys+" ("+columns+")")
	if err != nil {
		return fmt.Errorf("keys: store: %w", err)
	}
	if err := batch.Append(key.KeyID, string(key.OrganizationID), key.Name, key.Scopes, string(key.Hash[:]), key.CreatedAt, key.RevokedAt); err != nil {
		return fmt.Errorf("keys: store: %w", err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("keys: store: %w", err)
	}
	return nil
}

// Find returns the key with an id, revoked or not; false when there is none.
func (s Store) Find(ctx context.Context, keyID string) (auth.Key, bool, error) {
	key, err := scan(s.conn.QueryRow(ctx, read+"WHERE key_id = $1", keyID))
	if errors.Is(err, sql.ErrNoRows) {
		return auth.Key{}, false, nil
	}
	if err != nil {
		return auth.Key{}, false, fmt.Errorf("keys: find: %w", err)
	}
	return key, true, nil
}

// List returns the keys of an organization, revoked ones included, oldest first.
func (s Store) List(ctx context.Context, organization schema.OrganizationID) ([]auth.Key, error) {
	rows, err := s.conn.Query(ctx, read+"WHERE organization_id = $1 ORDER BY created_at, key_id", string(organization))
	if err != nil {
		return nil, fmt.Errorf("keys: list: %w", err)
	}
	defer rows.Close()
	var list []auth.Key
	for rows.Next() {
		key, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("keys: list: %w", err)
		}
		list = append(list, key)
	}
	return list, rows.Err()
}

func scan(row interface{ Scan(...any) error }) (auth.Key, error) {
	var key auth.Key
	var organization, hash string
	err := row.Scan(&key.KeyID, &organization, &key.Name, &key.Scopes, &hash, &key.CreatedAt, &key.RevokedAt)
	key.OrganizationID = schema.OrganizationID(organization)
	copy(key.Hash[:], hash)
	return key, err
}

// Used returns the credentials of keys that are not revoked and verified at or after since, with the last time.
func (s Store) Used(ctx context.Context, since time.Time) (map[auth.Credential]time.Time, error) {
	rows, err := s.conn.Query(ctx, `SELECT k.key_id, k.secret_hash, u.at
		FROM `+schema.TableAPIKeys+` AS k FINAL
		INNER JOIN (SELECT key_id, max(last_used_at) AS at FROM `+schema.TableAPIKeyUses+` GROUP BY key_id) AS u ON u.key_id = k.key_id
		WHERE isNull(k.revoked_at) AND u.at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`,
		clickhouse.Named("since", since.UnixMilli()))
	if err != nil {
		return nil, fmt.Errorf("keys: read uses: %w", err)
	}
	defer rows.Close()
	used := map[auth.Credential]time.Time{}
	for rows.Next() {
		var c auth.Credential
		var hash string
		var at time.Time
		if err := rows.Scan(&c.KeyID, &hash, &at); err != nil {
			return nil, fmt.Errorf("keys: read uses: %w", err)
		}
		copy(c.Hash[:], hash)
		used[c] = at
	}
	return used, rows.Err()
}

// RecordUse keeps that a key verified at an instant.
func (s Store) RecordUse(ctx context.Context, keyID string, at time.Time) error {
	batch, err := s.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0})),
		"INSERT INTO "+schema.TableAPIKeyUses+" (key_id, last_used_at)")
	if err != nil {
		return fmt.Errorf("keys: record use: %w", err)
	}
	if err := batch.Append(keyID, at); err != nil {
		return fmt.Errorf("keys: record use: %w", err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("keys: record use: %w", err)
	}
	return nil
}
