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

// A server that starts knows of established keys what a look-up of each would return.
func TestUsedIsValid(t *testing.T) {
	ctx := context.Background()
	store := keys.NewStore(olaptest.OpenStore(t).Conn())
	limited := key("limited", "acme", noon)
	limited.Networks, limited.ExpiresAt = networks("192.0.2.0/24", "2001:db8::/32"), new(time.Time)
	*limited.ExpiresAt = noon.Add(time.Hour)
	bare := key("bare", "globex", noon)
	bare.Scopes = []string{}
	revoked := key("revoked", "acme", noon)
	revoked.RevokedAt = &noon
	for _, k := range []schema.APIKey{limited, bare, revoked} {
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	uses := map[string]time.Time{"limited": noon, "bare": noon}
	if err := store.RecordUses(ctx, uses); err != nil {
		t.Fatal(err)
	}
	used, err := usedSince(store, noon, noon)
	if err != nil || len(used) != 2 {
		t.Fatal(used, err)
	}
	read, err := store.AllValid(ctx, []string{"limited", "bare", "revoked"}, noon)
	if err != nil || len(read) != 2 {
		t.Fatal(read, err)
	}
	for i := range 2 {
		for what, key := range map[string]schema.APIKey{"used": used[i].APIKey, "read": read[i]} {
			valid, err := store.Valid(ctx, key.KeyID, noon)
			if err != nil || valid.OrganizationID == "" || !reflect.DeepEqual(key, valid) {
				t.Errorf("%s %+v, valid %+v, %v", what, key, valid, err)
			}
		}
	}
}

func networks(texts ...string) (networks []netip.Prefix) {
	for _, text := range texts {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

func usedSince(store keys.Store, since, at time.Time) (used []schema.APIKeyUse, err error) {
	err = store.Used(context.Background(), since, at, func(use schema.APIKeyUse) { used = append(used, use) })
	return used, err
}
