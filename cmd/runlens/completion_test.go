package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/runlens/runlens/cmd/internal/completion"
)

// completed are the words offered for a command line whose words are separated by spaces, without what they mean.
func completed(t *testing.T, line string) string {
	t.Helper()
	code, out, stderr := command(t, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
	if code != 0 || stderr != "" {
		t.Errorf("%s: exit code %d: %s", line, code, stderr)
	}
	var words []string
	for text := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		word, _, _ := strings.Cut(text, "\t")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// typist is a desk with runs of yesterday, a saved question, a profile and a cache of its own.
func (o office) typist(t *testing.T, organization string) *desk {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	day := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	d := o.desk(t, organization, day+" a@x.example COMPLETED", day+" a@x.example COMPLETED", day+" b@x.example FAILED",
		day+" $(date)@x.example FAILED", day+" c,d@x.example FAILED")
	if code, _, stderr := d.query("--metrics run_count --save weekly"); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := command(t, d.key, "login", "--url", d.base, "--profile", "work"); code != 0 {
		t.Fatal(stderr)
	}
	return d
}

// agent is a filter on the only one that the runs of a desk have.
const agent = "agent_id=0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10"

// What may follow is worked out from kong's model, the catalog, the values that there have been and the files of the
// person.
func queryCompletion(t *testing.T, o office) {
	d := o.typist(t, "completion")
	const people = " user_identifier=a@x.example user_identifier=b@x.example"
	for line, want := range map[string]string{
		"que":                              "words query",
		"keys r":                           "words rotate revoke rotate-cursor-secret",
		"nothing ":                         "words",
		"query --metr":                     "words --metrics",
		"query --metrics run_count --me":   "words --metrics",
		"query --all --al":                 "words",
		"query --metrics run":              "words run_count run_success_rate",
		"query --metrics=run":              "words --metrics=run_count --metrics=run_success_rate",
		"query --metrics run_count,run":    "words run_count,run_success_rate",
		"query @weekly --metrics run_c":    "words run_count",
		"query --metrics run_count intera": "words",
		"query --model agent_u":            "words agent_user_activity",
		"query --model agent_user_activity --metrics intera":         "words interacted_run_count interaction_count",
		"query --model=agent_user_activity --metrics intera":         "words interacted_run_count interaction_count",
		"query --dimensions agent_id,user":                           "words agent_id,user_identifier agent_id,user_type",
		"query --order run_c":                                        "words run_count",
		"query --metrics failed_run_count --dimensions day --order ": "words day failed_run_count",
		"query --order day,run_count:":                               "words day,run_count:asc day,run_count:desc",
		"query --filter d":                                           "words day=",
		"query --filter agent_id=":                                   "words " + agent,
		"query --filter=agent_id=":                                   "words --filter=" + agent,
		"query --filter agent_id=x":                                  "words",
		"query --filter user_identifier=":                            "words" + people,
		"query --filter user_identifier=x,a":                         "words user_identifier=x,a@x.example",
		"query --filter nothing=":                                    "words",
		"query --filter user_type=internal --filter user_type=":      "words user_type=internal",
		"query --grain ":                                             "words week month",
		"query --output pa":                                          "words parquet",
		"query --timezone Europe/Sto":                                "words Europe/Stockholm",
		"query --limit ":                                             "words",
		"query -o ":                                                  "files",
		"query --body=":                                              "files",
		"query --profile ":                                           "words work",
		"query ":                                                     "words @weekly",
		"query @weekly ":                                             "words",
		"query -- --metr":                                            "words",
		"query --nonsense=x --metrics run_c":                         "words run_count",
		"ingest a.csv ":                                              "files",
		"completion ":                                                "words bash zsh fish",
		"worker --sour":                                              "words --source",
		"worker --mapping=x --sour":                                  "words --source",
		"worker reset r":                                             "words run",
		"man ":                                                       "files",
		"serve --no-pp":                                              "words --no-pprof",
	} {
		if got := completed(t, line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	_, out, _ := command(t, "", "__complete", "query", "--metrics", "run_c")
	if out != "words\nrun_count\tHow many runs were created, whatever their status is now.\n" {
		t.Errorf("a description: %q", out)
	}
	for path := range commands(testParser(t)) { // no command's flags are left out
		words := strings.Fields(path)[1:]
		if code, out, _ := command(t, "", append(append([]string{"__complete"}, words...), "--h")...); code != 0 ||
			!strings.HasPrefix(out, "words\n--help\t") {
			t.Errorf("%s: %d %q", path, code, out)
		}
	}
	completionInTrouble(t, d)
}

// completionInTrouble has what fails or hangs: there is less to choose from, in bounded time and without an error.
func completionInTrouble(t *testing.T, d *desk) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	must(t, err)
	defer silent.Close()
	pipe := filepath.Join(t.TempDir(), "pipe") // nobody ever writes into it
	must(t, syscall.Mkfifo(pipe, 0o600))
	file := fileOf(t, "key", []byte(d.key))
	for line, want := range map[string]string{
		"query --url 127.0.0.1:1 --metrics run_c":                          "words",
		"query --url http://u:p@x --metrics run_c":                         "words",
		"query --key-file /no/key --metrics run_c":                         "words",
		"query --profile nobody --metrics run_c":                           "words",
		"query --profile work --metrics run_c":                             "words run_count",
		"query --key-file " + file + " --url " + d.base + " --order run_c": "words run_count",
	} {
		if got := completed(t, line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	tabPatience = completion.Patience
	for _, hangs := range []string{"--url " + silent.Addr().String(), "--key-file " + pipe} {
		if got := completed(t, "query "+hangs+" --metrics run_c"); got != "words" {
			t.Errorf("%s: %s", hangs, got)
		}
	}
	tabPatience = time.Minute
	t.Setenv("RUNLENS_API_KEY", "rl_nobody")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if got := completed(t, "query --metrics run_c"); got != "words" {
		t.Errorf("with a wrong key: %s", got)
	}
	// What the server said an hour ago is good while it does not answer.
	t.Setenv("RUNLENS_API_KEY", d.key)
	completed(t, "query --metrics run_c")
	files, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "runlens", "*"))
	if len(files) != 1 {
		t.Fatalf("the cache has %v", files)
	}
	long := time.Now().Add(-24 * time.Hour)
	must(t, os.Chtimes(files[0], long, long))
	t.Setenv("RUNLENS_API_KEY", "rl_nobody")
	if got := completed(t, "query --metrics run_c"); got != "words run_count" {
		t.Errorf("from an old cache: %s", got)
	}
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	t.Setenv("RUNLENS_API_KEY", d.key)
	if got := completed(t, "query --metrics run_c"); got != "words run_count" {
		t.Errorf("without a cache: %s", got)
	}
}

// The scripts work in the shells themselves: a Tab completes, and nothing of what is typed is run.
func queryShells(t *testing.T, o office) {
	o.typist(t, "shells")
	folder := t.TempDir()
	t.Chdir(folder)
	stub := `#!/bin/sh
if [ "$1" = __complete ]; then ` + commandVariable + `=1 exec '` + os.Args[0] + `' "$@"; fi
printf '<%s>' "$@" > typed
`
	for name, text := range map[string]string{"bin/runlens": stub, "data.csv": ""} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o700))
	}
	t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("HOME", folder)
	for shell, start := range map[string][]string{
		"bash": {"bash", "--norc", "--noprofile"}, "zsh": {"zsh", "-f"}, "fish": {"fish", "--no-config"},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell + " is not installed")
			}
			_, script, _ := command(t, "", "completion", shell)
			must(t, os.WriteFile("_runlens", []byte(script), 0o600))
			load := "source ./_runlens"
			if shell == "zsh" {
				load = "fpath=($PWD $fpath); autoload -U compinit; compinit -u -d ./dump"
			}
			types(t, start, load, map[string]string{
				"runlens que\t--metr\trun_count,fai\t":               "<query><--metrics><run_count,failed_run_count>",
				"runlens query --metrics=run_count,fai\t":            "<query><--metrics=run_count,failed_run_count>",
				"runlens query --filter age\t0b7\t":                  "<query><--filter><" + agent + ">",
				"runlens query --filter=user_identifier=b\t":         "<query><--filter=user_identifier=b@x.example>",
				"runlens query --order run_count:d\t":                "<query><--order><run_count:desc>",
				"runlens query @we\t--output js\t":                   "<query><@weekly><--output><json>",
				"runlens query --fail-if 'run_count > 5' --dimen\tx": "<query><--fail-if><run_count > 5><--dimensions><x>",
				"runlens ingest da\t":                                "<ingest><data.csv>",
				"runlens query --body=da\t":                          "<query><--body=data.csv>",
			})
			if _, err := os.Stat("5"); err == nil {
				t.Error("a > in quotes has written a file")
			}
		})
	}
}

// types types each line with its Tabs into a shell, on a terminal of its own, and checks what runlens is called with.
func types(t *testing.T, start []string, load string, lines map[string]string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), start[0], start[1:]...)
	shell.Env = append(os.Environ(), "TERM=dumb")
	terminal, err := pty.StartWithSize(shell, &pty.Winsize{Rows: 50, Cols: 200})
	must(t, err)
	defer shell.Wait()
	defer terminal.Close()
	// The word is not typed as it is written: the terminal echoes what is typed.
	enter := func(line string) {
		t.Helper()
		if _, err := io.WriteString(terminal, line+"; echo do''ne\r"); err != nil {
			t.Fatal(err)
		}
		if said, ok := readUntil(terminal, "done"); !ok {
			t.Fatalf("%q: the shell ended: %s", line, said)
		}
	}
	enter(load)
	for line, want := range lines {
		os.Remove("typed")
		enter(line)
		if got, _ := os.ReadFile("typed"); string(got) != want {
			t.Errorf("%s %q: %s, want %s", start[0], line, got, want)
		}
	}
}

// readUntil reads what a terminal shows up to a word.
func readUntil(terminal io.Reader, word string) (shown string, ok bool) {
	var all strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(all.String(), word) {
		n, err := terminal.Read(buffer)
		if err != nil {
			return all.String(), false
		}
		all.Write(buffer[:n])
	}
	return all.String(), true
}
