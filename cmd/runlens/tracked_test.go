package main_test

import (
	"slices"
	"strings"
	"testing"
)

// top is what stands at the top of the repository.
var top = []string{".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "cmd", "deploy", "go.mod", "go.sum", "http",
	"ingest", "olap", "schema", "testdata"}

const mostBytes = 1 << 20 // of a tracked file, inclusive

// What a build leaves behind is not tracked: at the top there is nothing but what belongs there, and no file is large.
func TestOnlySourcesAreTracked(t *testing.T) {
	for name, content := range readTracked(t) {
		if first, _, _ := strings.Cut(name, "/"); !slices.Contains(top, first) {
			t.Errorf("%s stands at the top of the repository", first)
		}
		if len(content) > mostBytes {
			t.Errorf("%s has %d bytes, more than %d", name, len(content), mostBytes)
		}
	}
}
