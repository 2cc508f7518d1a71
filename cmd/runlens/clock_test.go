package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pure are packages that take every time from their caller. With the same input they give the same output.
var pure = []string{
	"schema", "olap/catalog", "olap/query", "olap/daterange", "olap/plan", "olap/compile", "olap/cursor",
	"ingest/normalize",
}

// withClock are the files of pure packages that read the clock all the same: they migrate a store.
var withClock = []string{"schema/migrate.go", "schema/versions.go"}

// clockNames are what package time has that reads the clock or waits.
var clockNames = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}

func TestPurePackagesDoNotReadTheClock(t *testing.T) {
	read := 0
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(pure, name) {
			continue
		}
		for _, file := range p.GoFiles {
			if slices.Contains(withClock, path.Join(name, file)) {
				continue
			}
			read++
			for _, position := range readsOfClock(t, filepath.Join(p.Dir, file), nil) {
				t.Errorf("%s reads the clock: %s", name, position)
			}
		}
	}
	if read < 2*len(pure) {
		t.Errorf("only %d files of pure packages were read", read)
	}
}

// TestReadsOfClock sees every way to read the clock, and nothing else.
func TestReadsOfClock(t *testing.T) {
	for _, c := range []struct {
		source string
		want   int
	}{
		{`import "time"; var t = time.Now()`, 1},
		{`import "time"; var clock = time.Now`, 1},
		{`import "time"; func age(t time.Time) time.Duration { return time.Since(t) + time.Until(t) }`, 2},
		{`import "time"; func wait() { <-time.After(1); time.Sleep(1); time.NewTimer(1) }`, 3},
		{`import clock "time"; var t = clock.Now()`, 1},
		{`import . "time"; var t = Now()`, 1},
		{`import "time"; var t = time.Unix(1, 0).After(time.Time{})`, 0},
		{`import "time"; var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // not time.Now()`, 0},
		{`var time struct{ Now func() int }; var t = time.Now()`, 0},
	} {
		if got := readsOfClock(t, "a.go", "package a; "+c.source); len(got) != c.want {
			t.Errorf("%s: %d reads, want %d", c.source, len(got), c.want)
		}
	}
}

// readsOfClock is where a file, or the source given for it, reads the clock. A file that imports package time
// without a name for it counts as one read.
func readsOfClock(t *testing.T, file string, source any) (found []token.Position) {
	t.Helper()
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, i := range tree.Imports {
		switch {
		case i.Path.Value != `"time"`:
		case i.Name == nil:
			name = "time"
		case i.Name.Name == ".":
			found = append(found, files.Position(i.Pos()))
		default:
			name = i.Name.Name
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := selector.X.(*ast.Ident)
		if ok && name != "" && of.Name == name && slices.Contains(clockNames, selector.Sel.Name) {
			found = append(found, files.Position(selector.Pos()))
		}
		return true
	})
	return found
}
