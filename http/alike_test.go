package httpapi_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A tap is a connection that keeps what is sent over it, without the values.
type tap struct {
	driver.Conn
	statements []string
}

func (t *tap) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	t.statements = append(t.statements, query)
	return t.Conn.Query(ctx, query, args...)
}

func (t *tap) Select(ctx context.Context, dest any, query string, args ...any) error {
	t.statements = append(t.statements, query)
	return t.Conn.Select(ctx, dest, query, args...)
}

func (t *tap) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	t.statements = append(t.statements, query)
	return t.Conn.QueryRow(ctx, query, args...)
}

func (t *tap) Exec(ctx context.Context, query string, args ...any) error {
	t.statements = append(t.statements, query)
	return t.Conn.Exec(ctx, query, args...)
}

func (t *tap) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	t.statements = append(t.statements, query)
	return t.Conn.PrepareBatch(ctx, query, options...)
}

// Spec 5.3: whatever is wrong with a well-formed key, its request sends the same statements to the store and has the
// same answer, at the first try and later; and it draws as much on the budget.
func TestInvalidKeysCauseTheSameWork(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := &tap{Conn: store.Conn()}
	const budget = 17 // 2 valid keys and 15 invalid requests
	s := serveOn(t, store, func(c *httpapi.Config) {
		c.Verifier = auth.NewVerifier(keys.NewStore(conn), limit.NewWindow(budget, time.Minute), time.Now,
			slog.New(slog.DiscardHandler))
	})
	ctx := context.Background()
	put := func(limits schema.KeyLimits, secret ...[32]byte) string {
		text, c := auth.NewKey()
		if len(secret) > 0 {
			c.Hash = secret[0]
		}
		key := schema.APIKey{
			KeyID:          c.KeyID,
			SecretHash:     c.Hash,
			OrganizationID: "acme",
			Scopes:         []string{auth.ScopeAnalyticsRead},
			CreatedAt:      time.Now(),
			KeyLimits:      limits,
		}
		if err := s.keys.Put(ctx, key); err != nil {
			t.Fatal(err)
		}
		return text
	}
	past := time.Now().Add(-time.Minute)
	for range 2 {
		s.get(catalogPath, put(schema.KeyLimits{})).want(t, 200, "", "")
	}
	revoked := put(schema.KeyLimits{})
	if _, err := s.keys.Revoke(ctx, strings.Split(revoked, "_")[1]); err != nil {
		t.Fatal(err)
	}
	unknown, _ := auth.NewKey()
	cases := map[string]string{
		"unknown": unknown, "revoked": revoked, "expired": put(schema.KeyLimits{ExpiresAt: &past}),
		"of another network": put(schema.KeyLimits{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}),
		"wrong secret":       put(schema.KeyLimits{}, [32]byte{1}),
	}
	want := ""
	for range 3 {
		for name, key := range cases {
			conn.statements = nil
			a := s.get(catalogPath, key, "x-request-id", "same")
			a.want(t, 401, "unauthorized", "")
			got := strings.Join(conn.statements, "\n") + "\n" + string(a.body)
			if want == "" {
				want = got
			}
			if got != want || len(conn.statements) != 1 {
				t.Errorf("%s: got\n%s\nanother one\n%s", name, got, want)
			}
		}
	}
	for name, key := range cases {
		if a := s.get(catalogPath, key); a.status != 429 {
			t.Errorf("%s: %d although the budget is drawn", name, a.status)
		}
	}
}
