package olap

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
)

const cursorSecretName = "cursor"

// CursorSecret returns the secret that the store keeps for signing cursors (contract 2,
// RUNLENS_CURSOR_SECRET), and makes one if there is none. When several servers make one at the same
// time, all of them take the one that was stored first.
func CursorSecret(ctx context.Context, conn driver.Conn) ([]byte, error) {
	secret, err := readSecret(ctx, conn)
	if err != nil || secret != nil {
		return secret, err
	}
	insert := "INSERT INTO " + schema.TableSecrets + " (name, value) VALUES ($1, $2)"
	if err := conn.Exec(ctx, insert, cursorSecretName, rand.Text()+rand.Text()); err != nil {
		return nil, fmt.Errorf("olap: keep the cursor secret: %w", err)
	}
	return readSecret(ctx, conn)
}

func readSecret(ctx context.Context, conn driver.Conn) ([]byte, error) {
	var value string
	first := "SELECT value FROM " + schema.TableSecrets + " WHERE name = $1 ORDER BY created_at, value LIMIT 1"
	err := conn.QueryRow(ctx, first, cursorSecretName).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("olap: read the cursor secret: %w", err)
	}
	return []byte(value), nil
}
