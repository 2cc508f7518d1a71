package olap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// Who may read the whole organization asks the query as it is.
func TestNothingNarrowsAWholeOrganization(t *testing.T) {
	q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],
		"filters":[{"member":"agent_id","op":"eq","value":"support"}],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	same, err := Request{Access: schema.WholeOrganization("acme"), Query: q}.narrow(time.Now())
	if err != nil || same.restricted || !reflect.DeepEqual(same.Query, q) {
		t.Errorf("%+v, %v", same, err)
	}
}

// Request.narrow makes a narrowed, and nothing else fills one or narrows a query: so every plan, statement, cache key
// and cursor is of a query that has its restriction.
func TestOnlyNarrowNarrows(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			function, _ := declared.(*ast.FuncDecl)
			ast.Inspect(declared, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				if !ok || len(literal.Elts) == 0 {
					return true
				}
				if of, ok := literal.Type.(*ast.Ident); !ok || of.Name != "narrowed" {
					return true
				}
				if made++; function == nil || function.Name.Name != "narrow" {
					t.Errorf("%s: a narrowed that narrow does not make", set.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if made != 1 {
		t.Errorf("a narrowed is made in %d places", made)
	}
}
