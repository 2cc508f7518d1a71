package keys

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/parts"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// changing are the rows of keys. Of more than so many, all keys may have changed.
var changing = parts.Table{Name: schema.TableAPIKeys, Column: "key_id", Most: 10_000}

// Changed returns which keys may have changed since an earlier state, nil for none, and the state now. It reads the
// rows that came since and not all keys.
func (s Store) Changed(ctx context.Context, since any) (schema.APIKeyChanges, error) {
	earlier, _ := since.(parts.State)
	changes, err := changing.Changed(ctx, s.conn, earlier)
	if err != nil {
		return schema.APIKeyChanges{}, fmt.Errorf("keys: %w", err)
	}
	return schema.APIKeyChanges{State: changes.State, All: changes.All, KeyIDs: changes.Values}, nil
}

// readValid reads what Valid does, of keys that are named by no caller of the API.
var readValid = sql.Select{
	Columns: []string{"key_id", "argMax(verification, revision)"}, From: all(schema.TableAPIKeys),
	Where: []string{"key_id IN {ids:Array(String)}"}, Group: []string{"key_id"},
}.String()

// AllValid returns those of some keys that are valid at an instant, with what Valid returns of each.
func (s Store) AllValid(ctx context.Context, keyIDs []string, at time.Time) ([]schema.APIKey, error) {
	rows, err := s.conn.Query(ctx, readValid, clickhouse.Named("ids", keyIDs))
	if err != nil {
		return nil, fmt.Errorf("keys: read the keys that changed: %w", err)
	}
	defer rows.Close()
	var valid []schema.APIKey
	for rows.Next() {
		var keyID, verification string
		if err := rows.Scan(&keyID, &verification); err != nil {
			return nil, fmt.Errorf("keys: read the keys that changed: %w", err)
		}
		key, err := parseVerification(keyID, verification, at)
		if err != nil {
			return nil, err
		}
		if key.KeyID != "" {
			valid = append(valid, key)
		}
	}
	return valid, rows.Err()
}
