package keys_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// Keys that were stored before keys had limits stay what they were, and can be revoked and rotated afterwards. So can
// those that were stored with limits, when the migrations were taken back and applied again.
func TestKeysOfEarlierSchemas(t *testing.T) {
	ctx := context.Background()
	server := olaptest.OpenStore(t)
	db, err := server.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := filepath.Glob("../../schema/migrations/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	limits := -1
	for i, file := range files { // by their numbers
		if match, _ := filepath.Match("*_api_key_limits.up.sql", filepath.Base(file)); match {
			limits = i
		}
	}
	if limits < 0 {
		t.Fatal("no migration brings the limits of keys")
	}
	store, conn := keys.NewStore(server.Conn()), server.Conn()
	down := func() {
		t.Helper()
		if err := schema.Down(ctx, db, len(files)-limits); err != nil {
			t.Fatal(err)
		}
	}
	up := func() {
		t.Helper()
		if err := schema.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
	}
	is := func(id string, at time.Time, valid bool) {
		t.Helper()
		got, err := store.Valid(ctx, id, at)
		if err != nil || (got.SecretHash != [32]byte{}) != valid || valid && (got.OrganizationID != "acme" || len(got.Scopes) != 1) {
			t.Errorf("%s at %v: %+v, %v", id, at, got, err)
		}
	}
	down()
	const old = "INSERT INTO api_keys (key_id, organization_id, scopes, secret_hash, created_at, revoked_at) SELECT $1, 'acme', ['analytics:read'], 'x', now64(3), "
	for _, statement := range []string{"NULL", "toDateTime64('2026-01-01 00:00:00', 3, 'UTC')"} {
		if err := conn.Exec(ctx, old+statement, "revoked before"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"valid", "to revoke", "to expire"} {
		if err := conn.Exec(ctx, old+"NULL", id); err != nil {
			t.Fatal(err)
		}
	}
	up()
	if _, err := store.Revoke(ctx, "to revoke"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Expire(ctx, "to expire", noon); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		is("valid", noon, true)
		is("to expire", noon.Add(-time.Millisecond), true)
		is("to expire", noon, false)
		is("to revoke", noon, false)
		is("revoked before", noon, false)
	}
	check()
	if err := conn.Exec(ctx, "OPTIMIZE TABLE api_keys FINAL"); err != nil {
		t.Fatal(err)
	}
	check()

	// Taken back, a key has no expiry any more; a revocation counts all the same, then and afterwards.
	down()
	if err := conn.Exec(ctx, old+"now64(3)", "to expire"); err != nil {
		t.Fatal(err)
	}
	var revoked uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM api_keys FINAL WHERE isNotNull(revoked_at)").Scan(&revoked); err != nil || revoked != 3 {
		t.Errorf("%d revoked keys, want 3, %v", revoked, err)
	}
	up()
	is("valid", noon, true)
	is("to expire", noon.Add(-time.Hour), false)
	is("to revoke", noon, false)
	is("revoked before", noon, false)
}
