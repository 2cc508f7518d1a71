package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// A goPackage is what `go list -json` prints of one.
type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// importsOf is what each of our packages imports, without its tests and the standard library.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		imports[name] = nil
		for _, to := range p.Imports {
			if first, _, _ := strings.Cut(to, "/"); strings.Contains(first, ".") {
				imports[name] = append(imports[name], strings.TrimPrefix(to, module))
			}
		}
	}
	return imports
}

// packages are all of our modules.
func packages(t *testing.T) (all []goPackage) {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...", module+"http/client/...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
