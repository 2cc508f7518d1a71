package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whoever answers callers has their access from their key. Only what operators run reads whole organizations.
func TestWhoReadsWholeOrganizations(t *testing.T) {
	allowed := []string{"cmd/bench/growth.go", "cmd/bench/options.go", "cmd/runlens/adminoperator.go",
		"cmd/runlens/explain.go"}
	var found []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		if entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && len(name) > 2) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "schema/access.go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "WholeOrganization" {
				found = append(found, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(found); !slices.Equal(found, allowed) {
		t.Errorf("whole organizations are read in %q, and may be in %q", found, allowed)
	}
}
