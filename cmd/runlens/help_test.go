package main

import (
	"bytes"
	"cmp"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/http/client/report"
)

// Every command, groups of commands included, has examples of its own in its help, and every example is a valid
// command line of it.
func TestEveryCommandHasAnExample(t *testing.T) {
	parser := testParser(t)
	for path, node := range commands(parser) {
		text := node.Detail
		if node.Type == kong.ApplicationNode {
			text = node.Help
		}
		examples := examplesIn(text, path)
		if len(examples) == 0 {
			t.Errorf("the help of %q has no example of it:\n%s", path, text)
		}
		for _, example := range examples {
			_, err := testParser(t).Parse(example)
			if err = cmp.Or(err, refusePasswords(example)); err != nil {
				t.Errorf("example %q of %q: %v", example, path, err)
			}
		}
	}
}

// --help prints the examples, and the default and the environment variable of a flag. It is the same of a command that
// is prepared alone.
func TestHelp(t *testing.T) {
	for path := range commands(testParser(t)) {
		args := append(strings.Fields(path)[1:], "--help")
		code, out, _ := command(t, "", args...)
		var ofAll bytes.Buffer
		if _, all := grammar(args).(*cli); all != (path == "runlens") {
			t.Errorf("%s: all commands are prepared: %t", path, all)
		} else if parser, err := newParser(&cli{}, kong.Writers(&ofAll, &ofAll), kong.Exit(func(int) {})); err != nil {
			t.Fatal(err)
		} else if parser.Parse(args); ofAll.String() != out {
			t.Errorf("%s --help among all commands:\n%s\nalone:\n%s", path, ofAll.String(), out)
		}
		if code != exitDone || !strings.Contains(out, "Example:") || !strings.Contains(out, "\n  "+path) &&
			!strings.Contains(out, " "+path+" ") {
			t.Errorf("%s --help: exit code %d\n%s", path, code, out)
		}
	}
	_, out, _ := command(t, "", "serve", "--help")
	out = strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"API address. Port 0 picks a free one. (default 127.0.0.1:8080, $RUNLENS_LISTEN)",
		"--ready-file=FILE Write the API address to FILE once requests are accepted.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("serve --help does not say %q:\n%s", want, out)
		}
	}
}

// Every command, flag and argument has a help text.
func TestHelpTexts(t *testing.T) {
	for path, node := range commands(testParser(t)) {
		texts := map[string]string{path: node.Help}
		for _, flag := range node.Flags {
			texts[path+" --"+flag.Name] = describe(flag.Value)
		}
		for _, argument := range node.Positional {
			texts[path+" "+argument.Name] = describe(argument)
		}
		for of, text := range texts {
			if text == "" || strings.HasPrefix(text, " ") {
				t.Errorf("%s has no help: %q", of, text)
			}
		}
	}
}

func testParser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{})
	must(t, err)
	return parser
}

// commands are all commands, and the program itself, by their paths such as "runlens keys list".
func commands(parser *kong.Kong) map[string]*kong.Node {
	found := map[string]*kong.Node{}
	var add func(path string, node *kong.Node)
	add = func(path string, node *kong.Node) {
		found[path] = node
		for _, child := range node.Children {
			add(path+" "+child.Name, child)
		}
	}
	add("runlens", parser.Model.Node)
	return found
}

var (
	// invocation is a runlens command within a line of shell, after variables and before a redirection or a pipe.
	invocation = regexp.MustCompile(`(?:^|\| )(?:[A-Z_]+=(?:\$\([^)]*\)|\S+) )*(runlens [^|<>]*)`)
	word       = regexp.MustCompile(`'([^']*)'|(\S+)`)
)

// examplesIn returns the arguments of the examples of a command in its help.
func examplesIn(text, path string) [][]string {
	_, text, _ = strings.Cut(text, "Example:\n")
	var examples [][]string
	for line := range strings.Lines(text) {
		found := invocation.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil || !strings.HasPrefix(found[1]+" ", path+" ") {
			continue
		}
		var args []string
		for _, w := range word.FindAllStringSubmatch(found[1], -1) {
			args = append(args, w[1]+w[2])
		}
		examples = append(examples, args[1:])
	}
	return examples
}

// The defaults of the flags are those of the Go client.
func TestDefaultsOfAQuestion(t *testing.T) {
	var c cli
	parser, err := newParser(&c)
	if err == nil {
		_, err = parser.Parse([]string{"query"})
	}
	if want := report.Default(); err != nil || !reflect.DeepEqual(c.Query.Question, want) {
		t.Errorf("%+v, %v, want %+v", c.Query.Question, err, want)
	}
}
