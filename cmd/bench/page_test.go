package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what results.json says into deploy/speed.md")

// The page's figures are those of results.json, the file that `make bench` wrote on the machine that it names.
func TestPageHasTheResults(t *testing.T) {
	const (
		file         = "../../deploy/speed.md"
		begins, ends = "<!-- results.json begins -->\n", "<!-- results.json ends -->\n"
	)
	var r report
	text, err := os.ReadFile("results.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begins)
	_, after, foundEnd := strings.Cut(rest, ends)
	if !found || !foundEnd {
		t.Fatalf("the page has no lines %q and %q", begins, ends)
	}
	want := before + begins + "\n" + r.markdown() + "\n" + ends + after
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("its figures are not those of results.json: run 'go test ./cmd/bench -run Page -update'")
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
