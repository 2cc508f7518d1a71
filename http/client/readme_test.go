package client_test

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

// The README's programs compile and run against a real server: one prints its days, the other both weeks.
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
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(blocks(t, "README.md", "go")[at]), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "go", "run", file)
		command.Env = append(os.Environ(), "RUNLENS_URL="+s.base, "RUNLENS_API_KEY="+s.key)
		out, err := command.Output()
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
}

// A program that imports the client gets packages of the standard library with it, and nothing else.
func TestStandardLibraryOnly(t *testing.T) {
	const form = "{{if not .Standard}}{{.ImportPath}}{{end}}"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", form, "./...").CombinedOutput()
	const want = "github.com/runlens/runlens/http/client github.com/runlens/runlens/http/client/report"
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}
