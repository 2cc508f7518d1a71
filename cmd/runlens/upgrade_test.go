package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A server goes on while a newer binary migrates its store, stays ready, and can be started again; keys from before and
// after hold. Where it does not work beside the newer one, it is not ready, and a start says the one thing to do.
func TestRollOut(t *testing.T) {
	flags := append(store(t), "--maintenance-share", "0")
	commandFlags := flags[:4]
	keeper, err := openStore(t.Context(), storeFlags{DataDir: flags[1], EngineLib: flags[3]},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	base, admin, stop := started(t, flags...)
	ingestTwoDays(t, commandFlags)
	_, key := createKey(t, commandFlags)
	answers := func(base, admin string) {
		t.Helper()
		if code, text := get(t, admin+"/readyz", ""); code != 200 {
			t.Errorf("readyz: %d %s", code, text)
		}
		if code, text := post(t, base, key, totals); code != 200 || !strings.Contains(text, `"rows":[[2]]`) {
			t.Errorf("%d %s", code, text)
		}
	}
	answers(base, admin)
	olaptest.Migrate(t, keeper, olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive}))
	answers(base, admin)
	stop()
	base, admin, _ = started(t, flags...)
	answers(base, admin)
	_, key = createKey(t, commandFlags)
	answers(base, admin)
	ingestTwoDays(t, commandFlags) // again, which changes nothing
	answers(base, admin)
	if code, out, stderr := command(t, "", append([]string{"migrate", "status"}, commandFlags...)...); code != exitDone ||
		!strings.Contains(out, "newer than this binary, which works with it") {
		t.Errorf("%d %s %s", code, out, stderr)
	}

	const breaking = "ALTER TABLE agents DROP COLUMN IF EXISTS nothing"
	olaptest.Migrate(t, keeper, olaptest.Newer(t, map[string]string{
		"9000_next": olaptest.Additive, "9010_breaking": breaking,
	}))
	code, text := get(t, admin+"/readyz", "")
	if code != 503 || !strings.Contains(text, "works with binaries from 9010 on") {
		t.Errorf("readyz: %d %s", code, text)
	}
	code, _, stderr := command(t, "", append([]string{"keys", "list", "--org", "acme"}, commandFlags...)...)
	if said := strings.TrimSpace(stderr); code != exitFailed || !strings.HasSuffix(said, "upgrade runlens") ||
		strings.Contains(said, "migrate up") {
		t.Errorf("%d %s", code, stderr)
	}
}

// A store of before the first release is refused with one remedy.
func TestOlderStoreHasOneRemedy(t *testing.T) {
	store, flags := unmigrated(t, t.TempDir())
	db, err := store.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Status(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO schema_migrations SELECT 53, 0, toUnixTimestamp64Nano(now64(9))"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"keys", "list", "--org", "acme"}, {"migrate", "up"}} {
		code, _, stderr := command(t, "", append(args, flags...)...)
		if code != exitFailed || !strings.Contains(stderr, "start with an empty database or data directory") ||
			strings.Contains(stderr, "run 'runlens migrate up'") || strings.Contains(stderr, "run it again") {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}
