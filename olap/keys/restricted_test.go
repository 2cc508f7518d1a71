package keys_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// Every way to read a key reads its restriction, also one as long as it may be, and after the key was given an end.
// What is stored has no scope that an older version knows.
func TestRestrictionsAreKept(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	store := keys.NewStore(conn)
	for name, r := range map[string]schema.Restriction{
		"short":  {Domains: []string{"example.com"}, Days: 90, MinPeople: 5},
		"person": {People: []string{"o'brien,\\\n?&=@example.com", "+15550100"}},
		"long":   {Agents: agents(47)},
	} {
		restriction, err := schema.NewRestriction(r)
		if err != nil {
			t.Fatal(err)
		}
		k := key(name, "acme", noon)
		k.Restriction = restriction
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Expire(ctx, name, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := store.RecordUses(ctx, map[string]time.Time{name: noon}); err != nil {
			t.Fatal(err)
		}
		found, _, err := store.Find(ctx, name)
		same(t, name, found, restriction, err)
		valid, err := store.Valid(ctx, name, noon)
		same(t, name, valid, restriction, err)
		read, err := store.AllValid(ctx, []string{name}, noon)
		if err != nil || len(read) != 1 {
			t.Fatal(read, err)
		}
		same(t, name, read[0], restriction, err)
		var known uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM api_keys WHERE key_id = $1 AND (has(scopes, 'analytics:read') OR "+
			"verification LIKE '%\\nanalytics:read\\n%')", name).Scan(&known); err != nil || known != 0 {
			t.Errorf("%s: %d rows have the scope of a key without a restriction, %v", name, known, err)
		}
	}
	used, err := usedSince(store, noon, noon)
	if err != nil || len(used) != 3 {
		t.Fatal(used, err)
	}
	listed, err := store.List(ctx, "acme")
	if err != nil || len(listed) != 3 {
		t.Fatal(listed, err)
	}
	for i := range 3 {
		if used[i].Restriction == nil || listed[i].Restriction == nil || len(listed[i].Scopes) != 1 {
			t.Errorf("used %+v, listed %+v", used[i], listed[i])
		}
	}
	if revoked, err := store.Revoke(ctx, "long"); err != nil || revoked.Restriction == nil {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	plain := key("two scopes", "acme", noon)
	plain.Scopes, plain.Restriction = []string{"analytics:read", "other"}, &schema.Restriction{Days: 1}
	if err := store.Put(ctx, plain); err == nil {
		t.Error("a restricted key with another scope is stored")
	}
}

func same(t *testing.T, name string, got schema.APIKey, want *schema.Restriction, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got.Restriction, want) ||
		!reflect.DeepEqual(got.Scopes, []string{schema.ScopeAnalyticsRead}) {
		t.Errorf("%s: got %q %+v, %v, want %+v", name, got.Scopes, got.Restriction, err, want)
	}
}

func agents(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("0b7e4d2c-0000-4000-8000-%012d", i))
	}
	return ids
}
