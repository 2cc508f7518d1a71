package keys_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

func key(id string, organization schema.OrganizationID, created time.Time) schema.APIKey {
	return schema.APIKey{
		KeyID: id, OrganizationID: organization, Name: "it's \\ \n", Scopes: []string{"analytics:read"},
		SecretHash: [32]byte{0, 1, 0xff, '\'', 31: 0}, CreatedAt: created,
	}
}

func TestKeysAreFoundListedAndRevoked(t *testing.T) {
	ctx := context.Background()
	store := keys.NewStore(olaptest.OpenStore(t).Conn())
	created := time.Date(2026, 1, 5, 10, 0, 0, 123e6, time.UTC)
	for i, id := range []string{"b", "a", "c"} {
		if err := store.Put(ctx, key(id, "acme", created.Add(time.Duration(i)*time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	bare := key("bare", "globex", created)
	bare.Scopes = []string{}
	if err := store.Put(ctx, bare); err != nil {
		t.Fatal(err)
	}

	found, ok, err := store.Find(ctx, "a")
	if want := key("a", "acme", created.Add(time.Second)); err != nil || !ok || found.Name != want.Name ||
		found.SecretHash != want.SecretHash ||
		found.OrganizationID != "acme" || !found.CreatedAt.Equal(want.CreatedAt) || found.RevokedAt != nil ||
		len(found.Scopes) != 1 {
		t.Errorf("found %+v, %v, %v", found, ok, err)
	}
	if found, _, err := store.Find(ctx, "bare"); err != nil || len(found.Scopes) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, ok, err := store.Find(ctx, "unknown"); ok || err != nil {
		t.Errorf("found an unknown key: %v, %v", ok, err)
	}

	if _, err := store.Revoke(ctx, "unknown"); !errors.Is(err, keys.ErrUnknown) {
		t.Errorf("revoked an unknown key: %v", err)
	}
	first, err := store.Revoke(ctx, "a")
	if err != nil || first.RevokedAt == nil {
		t.Fatal(first, err)
	}
	again, err := store.Revoke(ctx, "a")
	if err != nil || !again.RevokedAt.Equal(*first.RevokedAt) {
		t.Errorf("revoked again at %v, first at %v, %v", again.RevokedAt, first.RevokedAt, err)
	}
	// A late repeat of the creation does not bring it back.
	if err := store.Put(ctx, key("a", "acme", created)); err != nil {
		t.Fatal(err)
	}
	if found, _, _ := store.Find(ctx, "a"); found.RevokedAt == nil {
		t.Error("the creation, repeated, undid the revocation")
	}

	if err := store.RecordUses(ctx, map[string]time.Time{"b": created.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	list, err := store.List(ctx, "acme")
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if list[0].KeyID != "b" || list[0].LastUsedAt == nil || !list[0].LastUsedAt.Equal(created.Add(time.Hour)) ||
		list[1].LastUsedAt != nil || list[1].RevokedAt == nil {
		t.Errorf("listed %+v", list)
	}
}

// What the seven-day rule reads: keys that are valid and verified since.
func TestUsed(t *testing.T) {
	ctx := context.Background()
	store := keys.NewStore(olaptest.OpenStore(t).Conn())
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for id, uses := range map[string][]time.Time{
		"twice": {now, now.Add(-time.Hour)}, "border": {now.Add(-24 * time.Hour)},
		"old": {now.Add(-24*time.Hour - time.Millisecond)}, "revoked": {now}, "never": nil,
		"expired": {now}, "expires": {now},
	} {
		k := key(id, "acme", now)
		if end, ok := map[string]time.Time{"expired": now, "expires": now.Add(time.Millisecond)}[id]; ok {
			k.ExpiresAt = &end
		}
		if err := store.Put(ctx, k); err != nil {
			t.Fatal(err)
		}
		for _, at := range uses {
			if err := store.RecordUses(ctx, map[string]time.Time{id: at}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := store.Revoke(ctx, "revoked"); err != nil {
		t.Fatal(err)
	}
	used, err := usedSince(store, now.Add(-24*time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Time{}
	for _, use := range used {
		got[use.KeyID] = use.LastUsedAt
		if use.SecretHash != key("", "", now).SecretHash {
			t.Errorf("%s has the hash %v", use.KeyID, use.SecretHash)
		}
	}
	if len(got) != 3 || !got["expires"].Equal(now) || !got["twice"].Equal(now) ||
		!got["border"].Equal(now.Add(-24*time.Hour)) {
		t.Errorf("got %v", got)
	}
}

// A list reads little of the keys of other organizations, and of their uses, however many there are.
func TestListReadsTheKeysOfItsOrganization(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for _, statement := range []string{
		"INSERT INTO api_keys (key_id, organization_id, name, created_at) SELECT leftPad(toString(number), 16, '0'), " +
			"concat('org', toString(number)), repeat('x', 200), now64(3) FROM numbers(100000)",
		"INSERT INTO api_key_uses SELECT leftPad(toString(number), 16, '0'), now64(3) FROM numbers(100000)",
	} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// All keys have 25 MB. A granule of them has 2 MB and one of uses 0.2 MB, with 8,192 rows each.
	bounded := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{
		"max_bytes_to_read": 8 << 20, "max_rows_to_read": 8 * 8192}))
	list, err := keys.NewStore(conn).List(bounded, "org70000")
	if err != nil || len(list) != 1 || list[0].KeyID != "0000000000070000" || list[0].LastUsedAt == nil {
		t.Errorf("%+v %v", list, err)
	}
}
