package completion

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Line is a command line up to the cursor.
type Line struct {
	node          *kong.Node
	values        map[string][]string // of the flags before the last word, by their names
	arguments     int                 // how many are before the last word
	onlyArguments bool                // after --
	flag          *kong.Flag          // whose value the last word is; nil for none

	// The last word is before and text; text is completed. before is such as --metrics=, and else empty.
	before, text string
}

// parse reads words as kong does, but forgives what is wrong: the person has not finished.
func parse(root *kong.Node, words []string) *Line {
	l := &Line{node: root, values: make(map[string][]string)}
	if len(words) == 0 {
		return l
	}
	last := len(words) - 1
	for _, word := range words[:last] {
		l.add(word)
	}
	l.text = words[last]
	if name, value, valued := strings.Cut(l.text, "="); valued && l.flag == nil && !l.onlyArguments {
		if flag := l.find(name); flag != nil {
			l.flag, l.before, l.text = flag, name+"=", value
		}
	}
	return l
}

// add takes a word that is complete.
func (l *Line) add(word string) {
	name, value, valued := strings.Cut(word, "=")
	flag := l.find(name)
	switch {
	case l.flag != nil:
		l.values[l.flag.Name] = append(l.values[l.flag.Name], word)
		l.flag = nil
	case l.onlyArguments:
		l.arguments++
	case word == "--":
		l.onlyArguments = true
	case flag != nil && (valued || flag.IsBool()):
		l.values[flag.Name] = append(l.values[flag.Name], value)
	case flag != nil:
		l.flag = flag
	case strings.HasPrefix(word, "-") && word != "-": // no flag of ours
	default:
		child := slices.IndexFunc(l.node.Children, func(n *kong.Node) bool { return n.Name == word })
		if child >= 0 {
			l.node = l.node.Children[child]
		} else {
			l.arguments++
		}
	}
}

// flags are the command's, and those of a command below it that runs without being named.
func (l *Line) flags() (all []*kong.Flag) {
	for _, group := range l.node.AllFlags(true) {
		all = append(all, group...)
	}
	if l.node.DefaultCmd != nil {
		all = append(all, l.node.DefaultCmd.Flags...)
	}
	return all
}

// find is the flag with a name such as --metrics or -o; nil for none.
func (l *Line) find(name string) *kong.Flag {
	for _, flag := range l.flags() {
		if slices.Contains(names(flag), name) {
			return flag
		}
	}
	return nil
}

// completes is the flag's value or the argument that the last word is; nil for neither.
func (l *Line) completes() (value *kong.Value, placeholder string) {
	all := l.node.Positional
	n := l.arguments
	if len(all) > 0 && n >= len(all) && all[len(all)-1].IsCumulative() {
		n = len(all) - 1
	}
	switch {
	case l.flag != nil:
		return l.flag.Value, l.flag.PlaceHolder
	case n < len(all):
		return all[n], all[n].Tag.PlaceHolder
	}
	return nil, ""
}

// Given reports whether a flag is on the command line, before the last word.
func (l *Line) Given(flag string) bool { return len(l.values[flag]) > 0 }

// Value is that of a flag from the command line, else from its variable, else its default. It is empty where the
// command has no such flag.
func (l *Line) Value(flag string) string {
	if given := l.values[flag]; len(given) > 0 {
		return given[len(given)-1]
	}
	found := l.find("--" + flag)
	if found == nil {
		return ""
	}
	value := found.Default
	for _, name := range slices.Backward(found.Envs) {
		value = cmp.Or(os.Getenv(name), value)
	}
	return value
}

// list is the elements of a flag that takes lists, such as --metrics.
func (l *Line) list(flag string) []string {
	elements := strings.Split(strings.Join(l.values[flag], ","), ",")
	return slices.DeleteFunc(elements, func(element string) bool { return element == "" })
}
