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
	list := filepath.Join(t.TempDir(), "cells.yaml")
	if err := os.WriteFile(list, []byte("cells: [{ name: one, data_dir: "+dir+" }]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := map[string][]string{
		"engine backup": {filepath.Join(t.TempDir(), "backup")},
		"engine move":   {"--to", "http://127.0.0.1:1/runlens"},
		"keys list":     {"--org", "acme"}, "keys revoke": {"abc"}, "keys rotate": {"abc"},
		"purge": {"--org", "acme", "--yes"}, "worker reset": {"run", "--source", "postgres://127.0.0.1:1/none"},
	}
	for _, name := range ofAStore {
		for flag, value := range map[string]string{"--data-dir": dir, "--cells": list} {
			if flag == "--cells" && strings.HasPrefix(name, "engine") { // of one store
				continue
			}
			args := slices.Concat(strings.Fields(name), arguments[name], []string{flag, value})
			code, _, stderr := command(t, "", args...)
			if code != exitUsage || !strings.Contains(stderr, "there is no store in "+dir+": ") {
				t.Errorf("%v: %d %s", args, code, stderr)
			}
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
}
