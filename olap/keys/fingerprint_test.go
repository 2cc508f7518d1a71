package keys_test

import (
	"context"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// What a server trusts without look-ups rests on a fingerprint that no change leaves as it was, in whatever order
// processes write, whatever their clocks say, and whatever is merged in between.
func TestFingerprint(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	store := keys.NewStore(conn)
	exec := func(statement string) {
		t.Helper()
		if err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	put := func(k schema.APIKey) {
		t.Helper()
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	merge := func() { exec("OPTIMIZE TABLE api_keys FINAL") }
	at := func(minutes time.Duration) *time.Time { t := noon.Add(minutes * time.Minute); return &t }
	first, second := key("first", "acme", noon), key("second", "globex", noon)
	ending, revoked, earlier := first, first, second
	ending.ExpiresAt, revoked.RevokedAt, earlier.RevokedAt = at(60), at(10), at(-10)
	more := revoked
	more.Scopes = []string{}

	seen := map[string]string{}
	for _, change := range []struct {
		name string
		make func()
	}{
		{"none", func() {}},
		{"first key", func() { put(first) }},
		{"second key", func() { put(second) }},
		{"expiry", func() { put(ending) }},
		{"revocation", func() { put(revoked) }},
		{"revocation by a clock that is behind", func() { put(earlier) }},
		{"the row of a revoked key with other scopes", func() { put(more) }},
		{"key that is purged before it was seen", func() {
			put(key("third", "third", noon))
			exec("DELETE FROM api_keys WHERE organization_id = 'third'")
		}},
		{"purge", func() { exec("DELETE FROM api_keys WHERE organization_id = 'globex'") }},
		{"purge of all", func() { exec("DELETE FROM api_keys WHERE 1") }},
		{"key that was there before", func() { put(first) }},
		{"table of another store, with the first one's parts", func() {
			exec("CREATE TABLE another AS api_keys")
			exec("INSERT INTO another (key_id, created_at) VALUES ('another', now64(3))")
			exec("EXCHANGE TABLES another AND api_keys")
		}},
	} {
		change.make()
		for range 2 {
			text, err := store.Fingerprint(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := seen[text]; ok && change.name != before {
				t.Errorf("%q after %s and after %s", text, change.name, before)
			}
			seen[text] = change.name
			merge()
		}
	}

	// It stays what it is as long as nothing is written to the keys.
	exec("SYSTEM STOP MERGES api_keys")
	before, err := store.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RecordUse(ctx, "first", noon); err != nil {
		t.Fatal(err)
	}
	if after, err := store.Fingerprint(ctx); err != nil || after != before {
		t.Errorf("%q, then %q, %v", before, after, err)
	}
}

// A server that starts knows of established keys what a look-up of each would return.
func TestUsedIsValid(t *testing.T) {
	ctx := context.Background()
	store := keys.NewStore(olaptest.OpenStore(t).Conn())
	limited := key("limited", "acme", noon)
	limited.Networks, limited.ExpiresAt = networks("192.0.2.0/24", "2001:db8::/32"), new(time.Time)
	*limited.ExpiresAt = noon.Add(time.Hour)
	bare := key("bare", "globex", noon)
	bare.Scopes = []string{}
	for _, k := range []schema.APIKey{limited, bare} {
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
		if err := store.RecordUse(ctx, k.KeyID, noon); err != nil {
			t.Fatal(err)
		}
	}
	used, err := store.Used(ctx, noon, noon)
	if err != nil || len(used) != 2 {
		t.Fatal(used, err)
	}
	for _, use := range used {
		valid, err := store.Valid(ctx, use.KeyID, noon)
		if err != nil || valid.OrganizationID == "" || !reflect.DeepEqual(use.APIKey, valid) {
			t.Errorf("used %+v, valid %+v, %v", use.APIKey, valid, err)
		}
	}
}

func networks(texts ...string) (networks []netip.Prefix) {
	for _, text := range texts {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}
