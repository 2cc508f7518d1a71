package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// toTerminals are the only places that may write to a terminal by another way than output.Guarded, each with what it
// writes to.
var toTerminals = map[string][]string{
	"cmd/runlens/main.go":              {"os.Stdout", "os.Stderr"},              // guards them
	"cmd/internal/output/plot.go":      {"output.Controls"},                     // colors
	"cmd/runlens/queryrun.go":          {"output.Controls"},                     // clears the screen
	"cmd/runlens/queryprogress.go":     {"output.Controls"},                     // a bar of numbers
	"cmd/runlens/progress.go":          {"output.Controls"},                     // a bar of numbers
	"olap/clickhouse/child.go":         {"os.Stderr", "fmt.Print"},              // the engine's process writes to a file
	"cmd/internal/explain/genaliases/": {"log.Fatal"},                           // developers run it
	"olap/daterange/genzones/":         {"log.Fatal"},                           // developers run it
	"http/testdata/":                   {"log.Fatal", "fmt.Println"},            // a test's program
	"cmd/bench/":                       {"os.Stdout", "os.Stderr", "fmt.Print"}, // developers run it
	"cmd/deps/":                        {"os.Stderr", "fmt.Println"},            // developers run it
	"cmd/mutants/":                     {"log.Fatal", "fmt.Printf"},             // developers run it
	"cmd/sampledata/":                  {"os.Stdout", "os.Stderr"},              // developers run it
	"cmd/samplesource/":                {"os.Stdout", "os.Stderr"},              // developers run it
	"cmd/soak/":                        {"os.Stdout", "os.Stderr"},              // developers run it
}

// Nothing of the product writes to a terminal but through the guard that spells out what a terminal would obey.
func TestTerminalsAreReachedThroughTheGuard(t *testing.T) {
	used := make(map[string]bool)
	for name, source := range readTracked(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") {
			continue
		}
		for _, way := range waysToTerminals(t, name, source) {
			place := name
			if _, exact := toTerminals[name]; !exact {
				for prefix := range toTerminals {
					if strings.HasSuffix(prefix, "/") && strings.HasPrefix(name, prefix) {
						place = prefix
					}
				}
			}
			if !slices.Contains(toTerminals[place], way) {
				t.Errorf("%s uses %s: write to the command's streams, and texts of others with say or output.Printable", name, way)
			}
			used[place+" "+way] = true
		}
	}
	for place, ways := range toTerminals {
		for _, way := range ways {
			if !used[place+" "+way] {
				t.Errorf("%s does not use %s any longer", place, way)
			}
		}
	}
}

func TestWaysToTerminalsAreFound(t *testing.T) {
	const source = `package p
	func f() {
		fmt.Println(os.Stdout, os.Stderr)
		println("x")
		log.Printf("x")
		Controls(w)
		os.NewFile(1, "")
		syscall.Write(1, nil)
		os.OpenFile("/dev/tty", 0, 0)
	}`
	want := []string{"fmt.Println", "os.Stdout", "os.Stderr", "println", "log.Printf", "output.Controls", "os.NewFile",
		"syscall.Write", "/dev/tty"}
	if got := waysToTerminals(t, "cmd/internal/output/x.go", source); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// waysToTerminals are what a file uses that may be a terminal, or writes to one.
func waysToTerminals(t *testing.T, name, source string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	inOutput := path.Dir(name) == "cmd/internal/output"
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			way := from.Name + "." + n.Sel.Name
			printer := (from.Name == "log" || from.Name == "fmt") && strings.HasPrefix(n.Sel.Name, "Print") ||
				from.Name == "log" && (strings.HasPrefix(n.Sel.Name, "Fatal") || strings.HasPrefix(n.Sel.Name, "Panic"))
			named := []string{"os.Stdout", "os.Stderr", "os.NewFile", "syscall.Write", "syscall.Stdout", "syscall.Stderr",
				"output.Controls"}
			if printer || slices.Contains(named, way) {
				found = append(found, way)
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.Ident)
			switch {
			case ok && (called.Name == "print" || called.Name == "println"):
				found = append(found, called.Name)
			case ok && inOutput && called.Name == "Controls":
				found = append(found, "output.Controls")
			}
		case *ast.BasicLit:
			if text := fmt.Sprint(n.Value); n.Kind == token.STRING && strings.Contains(text, "/dev/tty") {
				found = append(found, "/dev/tty")
			}
		}
		return true
	})
	return found
}
