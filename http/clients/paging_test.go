package clients_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// The programs of paging.md run: each prints the rows of three pages in their order, though the second page is refused
// first, and the third one lost.
func TestPagingPrograms(t *testing.T) {
	s := serve(t, 1000)
	var records olaptest.Records
	var wantCSV, wantJSON strings.Builder
	for n := range 1203 {
		run := runOn(100+n, 5, "COMPLETED")
		person := fmt.Sprintf("p%04d@x.example", n)
		run.Identifier = &person
		rateCSV, rateJSON := "1", "1"
		if n == 700 { // a run that has not ended has no success rate
			run.Status = "RUNNING"
			rateCSV, rateJSON = "", "null"
		}
		records.Runs = append(records.Runs, run)
		fmt.Fprintf(&wantCSV, "2026-01-05,%s,,1,%s\n", person, rateCSV)
		fmt.Fprintf(&wantJSON, `["2026-01-05","%s",null,1,%s]`+"\n", person, rateJSON)
	}
	olaptest.Load(t, s.store.Conn(), records)
	// The service has runs of days before, without a person.
	csvBefore := "2026-01-01,,,2,0.5\n2026-01-02,,,1,1\n2026-01-03,,,1,\n"
	jsonBefore := "[\"2026-01-01\",null,null,2,0.5]\n[\"2026-01-02\",null,null,1,1]\n[\"2026-01-03\",null,null,1,null]\n"
	for _, c := range []struct{ language, program, file, want string }{
		{"python", "python3", "all.py", csvBefore + wantCSV.String()},
		{"js", "node", "all.mjs", jsonBefore + wantJSON.String()},
		{"go", "go run", "all.go", csvBefore + wantCSV.String()},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			start := strings.Fields(c.program)
			if _, err := exec.LookPath(start[0]); err != nil {
				t.Skip(start[0] + " is not installed")
			}
			proxy := s.behind(map[int64]func(http.ResponseWriter, *http.Request){1: status(429, "1"), 3: hangUp})
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(block(t, "paging.md", c.language)), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), start[0], append(start[1:], file)...)
			command.Env = append(os.Environ(), "RUNLENS_URL="+proxy.URL, "RUNLENS_API_KEY="+s.key)
			command.WaitDelay = time.Second
			var complaints strings.Builder // what starts the program may complain of a locale
			command.Stderr = &complaints
			out, err := command.Output()
			if got := strings.ReplaceAll(string(out), "\r\n", "\n"); err != nil || got != c.want {
				t.Errorf("%v: %.2000s\n%s", err, got, complaints.String())
			}
			if asked := proxy.asked.Load(); asked != 5 {
				t.Errorf("asked %d times for three pages, one of them refused and one lost", asked)
			}
			command = exec.CommandContext(t.Context(), start[0], append(start[1:], file)...)
			command.Env = append(os.Environ(), "RUNLENS_URL="+s.base, "RUNLENS_API_KEY=rl_nobody")
			if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "unauthorized") {
				t.Errorf("with a wrong key: %v: %s", err, out)
			}
		})
	}
}

// block is the first block of code of a language in a Markdown file of the clients.
func block(t *testing.T, file, language string) string {
	t.Helper()
	return blocks(t, file, language)[0]
}

// blocks are the blocks of code of a language in a Markdown file of the clients. There is at least one.
func blocks(t *testing.T, file, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(folder + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(rest, "\n```")
		all = append(all, code+"\n")
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return all
}
