package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A purge, a backup and whatever else is about what a store has is not done in a new store, in a directory that was
// mistyped, where nothing is left to do.
func TestNoStoreIsMadeToBePurged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dta")
	arguments := map[string][]string{
		"engine backup": {filepath.Join(t.TempDir(), "backup")},
		"engine move":   {"--to", "http://127.0.0.1:1/runlens"},
		"keys revoke":   {"abc"}, "keys rotate": {"abc"},
		"purge": {"--org", "acme", "--yes"}, "worker reset": {"run", "--source", "postgres://127.0.0.1:1/none"},
	}
	for _, name := range ofAStore {
		args := slices.Concat(strings.Fields(name), arguments[name], []string{"--data-dir", dir})
		code, _, stderr := command(t, "", args...)
		if code != exitUsage || !strings.Contains(stderr, "there is no store in "+dir+"; ") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
}

// Nor is one in an empty database. Who makes one says where.
func TestNoStoreIsMadeInAnEmptyDatabase(t *testing.T) {
	flags := store(t)
	in := func(args ...string) (int, string, string) { return command(t, "", append(args, flags...)...) }
	if code, _, stderr := in("migrate", "down", "--steps", "1000"); code != exitDone {
		t.Fatal(stderr)
	}
	if code, out, stderr := in("purge", "--org", "acme", "--yes"); code != exitUsage || out != "" ||
		!strings.Contains(stderr, "there is no store in "+flags[1]+"; ") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	if _, out, stderr := in("migrate", "status"); !strings.HasPrefix(out, "version 0 ") {
		t.Errorf("%s%s", out, stderr)
	}
	if code, _, stderr := in("keys", "create", "--org", "acme"); code != exitDone ||
		!strings.Contains(stderr, `"making a new store","in":"`+flags[1]+`"`) {
		t.Errorf("%d %s", code, stderr)
	}
}
