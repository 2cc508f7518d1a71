package console

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// hostileNames are identifiers that would run commands, or change what is read, where they are pasted.
var hostileNames = []string{
	"\x1b[201~\rtouch pasted\r", "\x1b[201~\ntouch pasted\n", "a\r\ntouch pasted\r\n", "'; touch pasted; '",
	"\"; touch pasted; \"", "$(touch pasted)", "`touch pasted`", "a\\'; touch pasted #", "!touch", "!!\x01",
	"\x7f\x7f\x7ftouch pasted\r", "\u0085touch", "\u009b201~x",
	"\u202etxt.exe\u202c", "\u2066x\u2069", "a\u2028b\u2029c", "a\u200bb\ufeffc", "\U000e0041\U000e0001", "a\tb",
	"\x03\x04\x1a\x15", "~/*?[a]{b,c}",
	"%s%n", "\\x41\\", "a,b", "é漢字😀", "-rf", "\u034f\u3164", "x\x00y", "#comment", "a=b&c;d|e>f<g",
	"\x1b]52;c;eA==\x07",
}

// What is copied has no character that a terminal obeys, and every shell, compiler and parser reads the name as it is.
func TestCopiesAreText(t *testing.T) {
	folder := t.TempDir()
	typed := filepath.Join(folder, "typed")
	stub := "#!/bin/sh\nprintf '%s\\0' \"$@\" > '" + typed + "'\n"
	for _, program := range []string{"runlens", "curl"} {
		if err := os.WriteFile(filepath.Join(folder, program), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const library = "import json\ndef Question(**q): return q\nclass Client:\n def __init__(self, url): self.url = url\n" +
		" def ask(self, q):\n  open('asked', 'w').write(json.dumps({'url': self.url, **q}))\n  return self\n" +
		" def to_pandas(self): pass\n"
	if err := os.WriteFile(filepath.Join(folder, "runlens.py"), []byte(library), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb", "HOME="+folder,
		"RUNLENS_API_KEY=key")
	shell := exec.Command("bash", "--norc", "--noprofile")
	shell.Env, shell.Dir = env, folder
	terminal, err := pty.StartWithSize(shell, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Wait()
	defer terminal.Close()
	pasted := func(line string) []string {
		if _, err := io.WriteString(terminal, strings.ReplaceAll(line, "\n", "\r")+"\recho do''ne\r"); err != nil {
			t.Fatal(err)
		}
		var all []byte
		for buffer := make([]byte, 4096); !bytes.Contains(all, []byte("\ndone")); {
			n, err := terminal.Read(buffer)
			if err != nil {
				t.Fatalf("%q: the shell ended: %s", line, all)
			}
			all = append(all, buffer[:n]...)
		}
		return arguments(t, typed)
	}
	run := func(line string) []string {
		command := exec.Command("bash", "-c", line)
		command.Env, command.Dir = env, folder
		if said, err := command.CombinedOutput(); err != nil {
			t.Errorf("%q: %v %s", line, err, said)
		}
		return arguments(t, typed)
	}
	const server = "http://127.0.0.1:8080"
	for _, name := range hostileNames {
		q := report.Default()
		q.Metrics, q.Filter = []string{"run_count"}, []string{report.FilterText("user_identifier", name)}
		query := client.Query{Model: "agent_runs", Filters: []client.Filter{client.In("user_identifier", name)}}
		filters := func(body string) bool {
			var got client.Query
			return json.Unmarshal([]byte(body), &got) == nil && len(got.Filters) == 1 && got.Filters[0].Values[0] == name
		}
		if !strings.Contains(name, "\x00") { // no argument of a program can hold it
			line := commandLine(q, server)
			for how, args := range map[string][]string{"bash": run(line), "a terminal": pasted(line)} {
				want := []string{"query", "--url=" + server, "--model=agent_runs", "--metrics=run_count", "--filter=" + q.Filter[0]}
				if !sameWords(args, want) {
					t.Errorf("%s, in %s: %q, want %q", line, how, args, want)
				}
			}
		}
		line := strings.TrimSpace(curl([]client.Query{query}, server))
		for how, args := range map[string][]string{"bash": run(line), "a terminal": pasted(line)} {
			if len(args) != 8 || !filters(args[7]) || args[1] != server+"/api/v1/analytics/query" {
				t.Errorf("%s, in %s: %q", line, how, args)
			}
		}
		saved, err := savedText(withoutDefaults(q))
		var again report.Question
		if err != nil || yaml.Unmarshal([]byte(saved), &again) != nil || !slices.Equal(again.Filter, q.Filter) {
			t.Errorf("%q as YAML: %s\nis read as %q, %v", name, saved, again.Filter, err)
		}
		source := goProgram([]client.Query{query}, server)
		if !slices.Contains(literals(t, source), name) {
			t.Errorf("%q is not in the Go program: %s", name, source)
		}
		script := typeScript([]client.Query{query}, server)
		_, body, _ := strings.Cut(script, "Query[] = [\n")
		if body, _, _ = strings.Cut(body, ",\n"); !filters(body) {
			t.Errorf("%q in TypeScript: %s", name, body)
		}
		program := python(q, server)
		command := exec.Command("python3", "-c", program)
		command.Dir, command.Env = folder, append(os.Environ(), "PYTHONPATH="+folder)
		said, err := command.CombinedOutput()
		var asked pythonQuestion
		if content, _ := os.ReadFile(filepath.Join(folder, "asked")); json.Unmarshal(content, &asked) != nil ||
			!reflect.DeepEqual(asked, pythonQuestion{server, "agent_runs", []string{"run_count"},
				map[string][]string{"user_identifier": {name}}}) {
			t.Errorf("%q in Python: %v %s\n%s", name, err, said, program)
		}
		for _, text := range []string{commandLine(q, server), line, saved, source, script, program} {
			plain := strings.NewReplacer("\n", "", "\t", "").Replace(text)
			if strings.ContainsFunc(plain, output.Hidden) || text != source && strings.Contains(text, "\t") {
				t.Errorf("what is copied has hidden characters: %q", text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "pasted")); err == nil {
		t.Error("a name was run as a command")
	}
}

// A pythonQuestion is what a stub of Python's client was asked.
type pythonQuestion struct {
	URL, Model string
	Metrics    []string
	Filters    map[string][]string
}

// arguments are those that a stub was called with; it is not called twice for one.
func arguments(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// sameWords ignores the order of flags, which is that of the question's fields.
func sameWords(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// literals are the texts in a Go program.
func literals(t *testing.T, source string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Error(err)
			}
			texts = append(texts, text)
		}
		return true
	})
	return texts
}
