package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// The README's programs compile and run against a real server, each in a module that requires the client's and nothing
// else: one prints its days, the other both weeks.
func TestReadme(t *testing.T) {
	s := serve(t, 1000)
	var records olaptest.Records
	for n, day := range []int{5, 5, 9} {
		run := runOn(100+n, day, "COMPLETED")
		kind := "internal"
		run.Type = &kind
		records.Runs = append(records.Runs, run)
	}
	olaptest.Load(t, s.store.Conn(), records)
	monday := time.Now().UTC()
	for monday.Weekday() != time.Monday {
		monday = monday.AddDate(0, 0, -1)
	}
	before := monday.AddDate(0, 0, -7).Format(time.DateOnly)
	for at, want := range []string{
		"^2026-01-05 2 1\n2026-01-09 1 1\n$", `^\[` + before + ` 0 0 0 \]\n\[` + monday.Format(time.DateOnly) + ` 0 `,
	} {
		program := t.TempDir()
		for file, text := range map[string]string{"main.go": blocks(t, "README.md", "go")[at], "go.mod": stranger(t)} {
			if err := os.WriteFile(filepath.Join(program, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), "go", "run", ".")
		command.Dir = program
		command.Env = append(os.Environ(), "RUNLENS_URL="+s.base, "RUNLENS_API_KEY="+s.key)
		out, err := command.Output()
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
}

// stranger is the go.mod of a program that uses the client, with the client's own go line.
func stranger(t *testing.T) string {
	t.Helper()
	beside, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(folder + "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if len(fields) != 4 || fields[0] != "module" || fields[2] != "go" {
		t.Fatalf("more than a name and a version of Go: %s", text)
	}
	name, version := fields[1], fields[3]
	return "module example.com/stranger\ngo " + version + "\nrequire " + name + " v1.0.0\nreplace " + name + " => " +
		beside + "\n"
}

// A program that imports the client gets packages of the standard library with it, and nothing else.
func TestStandardLibraryOnly(t *testing.T) {
	const form = "{{if not .Standard}}{{.ImportPath}}{{end}}"
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", form, "./...")
	command.Dir = folder
	out, err := command.CombinedOutput()
	const want = "github.com/runlens/runlens/http/client github.com/runlens/runlens/http/client/report"
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}
