package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What archives and packages of a release consist of is there, and they put the units' program where the units have it.
func TestReleaseContents(t *testing.T) {
	text := read(t, "../../deploy/release/goreleaser.yaml")
	found := regexp.MustCompile(`(?m)(?:src: |^ +- |(?:postinstall|preremove): )((?:deploy/|LICENSE|README)[^\s,]*)`).
		FindAllStringSubmatch(text, -1)
	if len(found) < 12 {
		t.Errorf("only %d files are named", len(found))
	}
	for _, name := range found {
		if files, err := filepath.Glob(filepath.Join("../..", name[1])); err != nil || len(files) == 0 {
			t.Errorf("there is no %s", name[1])
		}
	}
	if !regexp.MustCompile(`(?m)^    bindir: /usr/bin$`).MatchString(text) {
		t.Error("the program is not installed into /usr/bin")
	}
	for _, script := range []string{"installed.sh", "removing.sh"} {
		if info, err := os.Stat(filepath.Join("../../deploy/release", script)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s can't be run: %v", script, err)
		}
	}
}

// The chart sets only variables that something reads. What its manifests are, deploy/tools tests.
func TestChartVariables(t *testing.T) {
	files, err := filepath.Glob("../../deploy/helm/runlens/templates/*")
	must(t, err)
	known, set := variables(t), 0
	for _, file := range files {
		for _, name := range regexp.MustCompile(`name: (RUNLENS_\w+)`).FindAllStringSubmatch(read(t, file), -1) {
			set++
			if !known[name[1]] {
				t.Errorf("%s sets %s, which nothing reads", file, name[1])
			}
		}
	}
	if set < 9 {
		t.Errorf("the chart sets only %d variables", set)
	}
}
