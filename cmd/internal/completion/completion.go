// Package completion completes the command lines of runlens in bash, zsh and fish.
//
// A script in the shell runs `runlens __complete WORDS…` for every Tab. The last word, which may be empty, ends at the
// cursor. The first line of the answer is `files`, which leaves it to the shell to complete the name of a file, or
// `words`; then every further line is a whole word that may stand in the place of the last one, and after a tab what it
// means. Commands and flags are those of kong's model, which parses the command lines that are run. Values come from
// the server's catalog, from queries and from the person's own files.
//
// A Tab waits for Patience at most, and prints no error: whatever fails, there is less to choose from. The scripts run
// nothing of what is typed. (Those of the library cobra do, and the quoted > of a threshold then overwrites a file.)
package completion

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/output"
)

// Command is the first word of the command lines that come from the scripts.
const Command = "__complete"

// Patience is how long a Tab may take to find values, usually.
const Patience = time.Second

// Shells are those that Script knows.
var Shells = []string{"bash", "zsh", "fish"}

var (
	//go:embed scripts/runlens.bash
	bashScript string
	//go:embed scripts/runlens.zsh
	zshScript string
	//go:embed scripts/runlens.fish
	fishScript string
)

// Script is the script of a shell. It works for the program runlens in the PATH.
func Script(shell string) string {
	return map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
}

// A Completer has what Answer needs. Describe is the help of a flag, Patience how long values are looked for.
type Completer struct {
	Program  *kong.Application
	Describe kong.HelpValueFormatter
	Values   Values
	Patience time.Duration
}

// Answer prints what completes the last of the words.
func (c Completer) Answer(ctx context.Context, words []string, out io.Writer) {
	l := parse(c.Program.Node, words)
	var found []string
	switch value, placeholder := l.completes(); {
	case l.flag == nil && !l.onlyArguments && strings.HasPrefix(l.text, "-"):
		found = c.flags(l)
	case value == nil:
		found = commands(l)
	case value.Enum != "":
		found = value.EnumSlice()
	case placeholder == "FILE" || placeholder == "DIR":
		fmt.Fprintln(out, "files")
		return
	default:
		if find := c.Values.finders()[value.Name]; find != nil {
			found = c.bounded(ctx, find, l)
		}
	}
	fmt.Fprintln(out, "words")
	for _, word := range found {
		name, _, _ := strings.Cut(word, "\t")
		if name != "" && strings.HasPrefix(name, l.text) && !strings.ContainsFunc(name, output.Hidden) {
			fmt.Fprintln(out, l.before+word)
		}
	}
}

// flags are those of the command that may be given again, or are not yet.
func (c Completer) flags(l *Line) (found []string) {
	for _, flag := range l.flags() {
		if l.Given(flag.Name) && !flag.IsSlice() {
			continue
		}
		for _, name := range names(flag) {
			found = append(found, described(name, c.Describe(flag.Value)))
		}
	}
	return found
}

func commands(l *Line) (found []string) {
	if l.arguments > 0 {
		return nil
	}
	for _, child := range l.node.Children {
		if !child.Hidden {
			found = append(found, described(child.Name, child.Help))
		}
	}
	return found
}

// described is a line of an answer.
func described(word, description string) string {
	return word + "\t" + output.Printable(strings.Join(strings.Fields(description), " "))
}

// bounded is what a finder finds in time. Whatever it asks may hang: a server, a name server, or a pipe in the place of
// a file.
func (c Completer) bounded(ctx context.Context, find finder, l *Line) []string {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- find(ctx, l) }()
	select {
	case words := <-found:
		return words
	case <-ctx.Done():
		return nil
	}
}

// names are a flag's, as they are typed.
func names(flag *kong.Flag) []string {
	all := []string{"--" + flag.Name}
	if flag.Short != 0 {
		all = append(all, "-"+string(flag.Short))
	}
	if flag.Tag.Negatable != "" {
		all = append(all, "--no-"+flag.Name)
	}
	return all
}
