package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// units are the units of systemd, and what is installed with them.
const units = "../../deploy/systemd"

// installed returns the path of a program that checks files of deploy. Without it the test is skipped: .ci/run installs
// all of them.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	return path
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return string(text)
}

// systemd finds nothing to say about the units, and no more exposure than their page states.
func TestUnits(t *testing.T) {
	analyze := installed(t, "systemd-analyze")
	dir := t.TempDir()
	stated := regexp.MustCompile("`systemd-analyze security` says ([0-9]+)\\.([0-9]) ").FindStringSubmatch(
		read(t, units, "README.md"))
	if stated == nil {
		t.Fatal("README.md states no exposure")
	}
	for _, unit := range []string{"runlens-serve.service", "runlens-worker.service"} {
		// systemd looks whether the program is there.
		path := filepath.Join(dir, unit)
		text := strings.ReplaceAll(read(t, units, unit), "/usr/bin/runlens", os.Args[0])
		must(t, os.WriteFile(path, []byte(text), 0o600))
		out, err := exec.Command(analyze, "verify", path).CombinedOutput()
		if err != nil || len(out) > 0 { // a key that it does not know is only said
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		out, err = exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold="+stated[1]+stated[2],
			path).CombinedOutput()
		if want := fmt.Sprintf("for %s: %s.%s OK", unit, stated[1], stated[2]); err != nil ||
			!strings.Contains(string(out), want) {
			t.Errorf("%v, want %q\n%s", err, want, out)
		}
	}
}

// Both units are bounded alike.
func TestUnitsAreBoundedAlike(t *testing.T) {
	bounds := func(unit string) string {
		_, after, found := strings.Cut(read(t, units, unit), "\nUser=runlens\n")
		if !found || !strings.Contains(after, "CapabilityBoundingSet=\n") {
			t.Fatalf("%s names no user and no bounds", unit)
		}
		return after
	}
	if bounds("runlens-serve.service") != bounds("runlens-worker.service") {
		t.Error("the units differ behind User=")
	}
}

// The user of the units is one that systemd-sysusers can make.
func TestSystemUser(t *testing.T) {
	path, err := filepath.Abs(filepath.Join(units, "runlens.sysusers"))
	must(t, err)
	out, err := exec.Command(installed(t, "systemd-sysusers"), "--dry-run", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "'runlens'") {
		t.Errorf("%v: %s", err, out)
	}
}

// Every variable of the example is one that serve or worker reads, and they accept its values, uncommented.
func TestEnvironmentExample(t *testing.T) {
	known := variables(t)
	found := regexp.MustCompile(`(?m)^#?(RUNLENS_\w+)=(\S+)$`).FindAllStringSubmatch(read(t, units, "runlens.env"), -1)
	if len(found) < 8 {
		t.Errorf("the example has only %d variables", len(found))
	}
	for _, variable := range found {
		if !known[variable[1]] {
			t.Errorf("nothing reads %s", variable[1])
		}
		t.Setenv(variable[1], variable[2])
	}
	parser, err := newParser(&cli{})
	must(t, err)
	for _, command := range []string{"serve", "worker"} {
		if _, err := parser.Parse([]string{command}); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// variables are those that commands read.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"RUNLENS_ADMIN_TOKEN": true} // read without a flag
	parser, err := newParser(&cli{})
	must(t, err)
	if err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, env := range flag.Envs {
				known[env] = true
			}
		}
		return next(nil)
	}); err != nil {
		t.Fatal(err)
	}
	return known
}
