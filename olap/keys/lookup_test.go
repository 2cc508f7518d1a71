package keys_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// A tap is a connection that keeps the statements that read a row.
type tap struct {
	driver.Conn
	statements []string
	arguments  []any // of the last one
}

func (t *tap) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	t.statements, t.arguments = append(t.statements, query), args
	return t.Conn.QueryRow(ctx, query, args...)
}

// Spec 5.3: a look-up reads and returns as much for a key that is revoked or expired as for one that does not
// exist, and as for one that is valid.
func TestALookUpIsTheSameWorkForEveryKey(t *testing.T) {
	ctx := context.Background()
	conn := &tap{Conn: olaptest.OpenStore(t).Conn()}
	store := keys.NewStore(conn)
	// Some thousand keys, so that one is in one granule of several and outside of other parts.
	if err := conn.Exec(ctx, `INSERT INTO api_keys (key_id, organization_id, scopes, secret_hash, created_at)
		SELECT leftPad(toString(number), 16, '0'), 'acme', ['analytics:read'], 'x', now64(3) FROM `+
		`numbers(30000)`); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{
		"valid": "0000000000007001", "revoked": "0000000000007002", "expired": "0000000000007003",
		"unknown": "00000000000x7004", "unknown, after all": "zzzzzzzzzzzzzzzz", "unknown, before all": "000000000000000!",
	}
	if _, err := store.Revoke(ctx, ids["revoked"]); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Expire(ctx, ids["expired"], noon); err != nil {
		t.Fatal(err)
	}
	for name, id := range ids {
		conn.statements = nil
		if _, err := store.Valid(ctx, id, noon); err != nil {
			t.Fatal(name, err)
		}
		if len(conn.statements) != 1 {
			t.Fatalf("%s: %d statements", name, len(conn.statements))
		}
		rows, err := conn.Query(ctx, conn.statements[0], conn.arguments...)
		if err != nil {
			t.Fatal(name, err)
		}
		count := 0
		for rows.Next() {
			count++
			var row string
			if err := rows.Scan(&row); err != nil {
				t.Fatal(err)
			}
			if len(row) != 3200 {
				t.Errorf("%s: a row of %d bytes", name, len(row))
			}
			if strings.HasPrefix(name, "unknown") || name == "revoked" {
				if strings.Trim(row, "\x00") != "" {
					t.Errorf("%s: %q", name, row)
				}
			}
		}
		rows.Close()
		if count != 1 {
			t.Errorf("%s: %d rows", name, count)
		}
		// Every granule of every part, by the statement's plan.
		plan := explain(t, conn, conn.statements[0], conn.arguments)
		parts := regexp.MustCompile(`(?:Parts|Granules): (\d+)/(\d+)`).FindAllStringSubmatch(plan, -1)
		if len(parts) == 0 {
			t.Fatalf("%s: the plan does not show what is read:\n%s", name, plan)
		}
		for _, p := range parts {
			if p[1] != p[2] {
				t.Errorf("%s: the index skips %s", name, p[0])
			}
		}
	}
}

func explain(t *testing.T, conn driver.Conn, statement string, args []any) string {
	t.Helper()
	rows, err := conn.Query(context.Background(), "EXPLAIN indexes = 1 "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, line)
	}
	return plan.String()
}

// What a look-up returns of a key, at the longest that a key may be, and that it ends with the key.
func TestValid(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	store := keys.NewStore(conn)
	end := noon.Add(time.Hour)
	k := key("longest", schema.OrganizationID(strings.Repeat("o", 64)), noon)
	k.ExpiresAt = &end
	for i := range schema.MaxKeyNetworks {
		k.Networks = append(k.Networks,
			netip.MustParsePrefix(fmt.Sprintf("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff%02x/128", 0x10+i)))
	}
	bare := key("bare", "acme", noon)
	bare.Scopes = []string{}
	for _, k := range []schema.APIKey{k, bare} {
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Valid(ctx, "longest", end.Add(-time.Millisecond))
	if err != nil || got.OrganizationID != k.OrganizationID || !reflect.DeepEqual(got.Scopes, k.Scopes) ||
		got.SecretHash != k.SecretHash ||
		got.ExpiresAt == nil || !got.ExpiresAt.Equal(end) || !reflect.DeepEqual(got.Networks, k.Networks) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := store.Valid(ctx, "bare", noon.AddDate(100, 0, 0)); err != nil || got.SecretHash != bare.SecretHash ||
		len(got.Scopes) != 0 || got.ExpiresAt != nil || got.Networks != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	// An earlier end wins, a later one does not, in whatever order they are stored and merged.
	for _, at := range []time.Time{noon.Add(2 * time.Hour), noon.Add(time.Minute), noon.Add(30 * time.Minute)} {
		if _, err := store.Expire(ctx, "longest", at); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Put(ctx, k); err != nil { // a late repeat of the creation
		t.Fatal(err)
	}
	for range 2 {
		for at, valid := range map[time.Time]bool{noon.Add(time.Minute - time.Millisecond): true,
			noon.Add(time.Minute): false} {
			got, err := store.Valid(ctx, "longest", at)
			if err != nil || (got.SecretHash == k.SecretHash) != valid ||
				!valid && (got.OrganizationID != "" || got.ExpiresAt != nil) {
				t.Errorf("at %v: %+v, %v", at, got, err)
			}
		}
		if found, _, err := store.Find(ctx, "longest"); err != nil || !found.ExpiresAt.Equal(noon.Add(time.Minute)) {
			t.Errorf("found %+v, %v", found, err)
		}
		if err := conn.Exec(ctx, "OPTIMIZE TABLE api_keys FINAL"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Revoke(ctx, "longest"); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Valid(ctx, "longest", noon); err != nil || got.SecretHash == k.SecretHash {
		t.Errorf("revoked: %+v, %v", got, err)
	}
}
