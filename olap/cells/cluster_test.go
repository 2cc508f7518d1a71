package cells

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The shards of a cluster are a file of cells, without the password of the server that was asked; replicas are refused.
func TestCellsOfACluster(t *testing.T) {
	shards := []Shard{{1, "ch1.internal", 9000, 1}, {2, "10.0.0.2", 9440, 3}}
	text, err := FileOf("main", shards, "https://runlens:secret@ch1.internal:8443/records")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cells.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := ReadFile(path)
	want := []Cell{{Name: "main-1", URL: "clickhouse://runlens@ch1.internal:9000/records", Weight: 1},
		{Name: "main-2", URL: "clickhouse://runlens@10.0.0.2:9440/records", Weight: 3}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := FileOf("Main cluster", shards, "http://h:8123/d"); err == nil {
		t.Error("a name that no cell can have is accepted")
	}
	if unreplicated(append(shards, Shard{2, "10.0.0.3", 9000, 1})) == nil || unreplicated(shards) != nil {
		t.Error("replicas are told from shards wrongly")
	}
}
