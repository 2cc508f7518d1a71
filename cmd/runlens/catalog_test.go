package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/catalog"
)

// The catalog of a running server names every member, as a table and as JSON.
func queryCatalog(t *testing.T, o office) {
	o.desk(t, "catalog")
	code, table, stderr := command(t, "", "catalog")
	if code != 0 || stderr != "" || !strings.Contains(table, "\nagent_runs\n") {
		t.Errorf("%d %s\n%s", code, stderr, table)
	}
	_, text, _ := command(t, "", "catalog", "--output", "json")
	var answer struct {
		CatalogVersion string
		Models         []struct {
			Name                string
			Metrics, Dimensions []struct {
				Name, Unit string
				Operators  []string
			}
		}
	}
	must(t, json.Unmarshal([]byte(text), &answer))
	for i, model := range catalog.Models {
		got := answer.Models[i]
		for n, metric := range model.Metrics {
			if got.Metrics[n].Name != metric.Name || got.Metrics[n].Unit == "" || !strings.Contains(table, metric.Description) {
				t.Errorf("the metric %s is not there: %+v", metric.Name, got.Metrics[n])
			}
		}
		for n, dimension := range model.Dimensions {
			if got.Dimensions[n].Name != dimension.Name || len(got.Dimensions[n].Operators) != 2 ||
				!strings.Contains(table, dimension.Description) {
				t.Errorf("the dimension %s is not there: %+v", dimension.Name, got.Dimensions[n])
			}
		}
	}
	for flags, want := range map[string]string{
		"--url 127.0.0.1:1":  "no server answers at http://127.0.0.1:1",
		"--url ftp://x":      "is no address",
		"--profile nobody":   "there is no profile nobody",
		"--output yaml":      "--output must be one of",
		"--key-file /no/key": "/no/key",
	} {
		code, out, stderr := command(t, "", append([]string{"catalog"}, strings.Fields(flags)...)...)
		if code == exitDone || out != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %s%s", flags, code, out, stderr)
		}
	}
}

// Every command has a manual page with its flags and examples, and groff has nothing to say against it.
func TestManual(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "share", "man1")
	if code, out, stderr := command(t, "", "man", folder); code != 0 || !strings.HasPrefix(out, "wrote ") {
		t.Fatal(code, out, stderr)
	}
	files, err := os.ReadDir(folder)
	all := commands(testParser(t))
	if err != nil || len(files) != len(all) {
		t.Errorf("%d pages for %d commands, %v", len(files), len(all), err)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed: the pages are not read")
	}
	for path, node := range all {
		page := filepath.Join(folder, strings.ReplaceAll(path, " ", "-")+".1")
		read := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=2000n", page)
		var warnings strings.Builder
		read.Stderr = &warnings
		out, err := read.Output()
		if err != nil || warnings.String() != "" {
			t.Errorf("%s: %v\n%s", page, err, warnings.String())
		}
		text := strings.Join(strings.Fields(string(out)), " ")
		wants := []string{"NAME " + strings.ReplaceAll(path, " ", "-") + " - ", "SYNOPSIS " + path, "EXAMPLES ", path}
		for _, flag := range node.Flags {
			wants = append(wants, strings.Join(strings.Fields(flag.String()+" "+describe(flag.Value)), " "))
		}
		for _, argument := range node.Positional {
			wants = append(wants, strings.Join(strings.Fields(describe(argument)), " "))
		}
		for _, child := range node.Children {
			wants = append(wants, child.Help)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", page, want, out)
			}
		}
	}
}
