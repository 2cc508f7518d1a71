package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Parts that ClickHouse has put aside, since they are damaged, may have what is purged, and no purge changes them. So
// it does not say that everything is done before somebody has dropped them. What a killed backup has left goes.
func TestAPurgeOfWhatWasPutAside(t *testing.T) {
	flags, dir := store(t), t.TempDir()
	const identifier = "xk7qzwv3j@jt9.example"
	file := filepath.Join(dir, "people.ndjson")
	people(t, file)
	records, err := os.ReadFile(file)
	must(t, err)
	text := strings.ReplaceAll(string(records), "ada@x.example", identifier)
	if code, _, stderr := command(t, text, append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	conn := joined(t, flags)
	var path string
	const part = "SELECT any(path) FROM system.parts WHERE database = currentDatabase() AND table = 'attributions'" +
		" AND active"
	must(t, conn.QueryRow(t.Context(), part).Scan(&path))
	must(t, os.Truncate(filepath.Join(path, "columns.txt"), 0))
	killEngine(t, flags[1])
	const aside = "SELECT count() FROM system.detached_parts WHERE table = 'attributions'"
	if n := counted(t, conn, aside); n != 1 {
		t.Fatalf("%d parts were put aside", n)
	}
	purge := append([]string{"purge", "--org", "acme", "--person", identifier, "--yes"}, flags...)
	engine := filepath.Join(flags[1], "engine")
	left := filepath.Join(engine, "backups", "killed")
	must(t, os.MkdirAll(left, 0o700))
	must(t, os.WriteFile(filepath.Join(left, "data.bin"), []byte(identifier), 0o600))
	code, out, stderr := command(t, "", purge...)
	if places := found(t, conn, engine, identifier); len(places) == 0 {
		t.Error("what was put aside does not have the person: this test would not see it")
	}
	if code != exitFailed || !strings.Contains(stderr, "attributions") || !strings.Contains(out, "runs: ") {
		t.Errorf("a purge that leaves a part of attributions: %d\n%s%s", code, out, stderr)
	}
	var name string
	if err := conn.QueryRow(t.Context(), "SELECT name FROM system.detached_parts WHERE table = 'attributions'").
		Scan(&name); err != nil {
		t.Fatal(err)
	}
	drop := "ALTER TABLE attributions DROP DETACHED PART '" + name + "' SETTINGS allow_drop_detached = 1"
	must(t, conn.Exec(t.Context(), drop))
	if code, out, stderr := command(t, "", purge...); code != 0 {
		t.Errorf("once it is dropped: %d\n%s%s", code, out, stderr)
	}
	if places := found(t, conn, engine, identifier); len(places) > 0 {
		t.Errorf("after the purge: %v", places)
	}
}
