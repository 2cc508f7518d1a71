package conform

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Named script is one of a folder's.
type Named struct {
	Name string // of its file, without the ending
	Script
}

// Scripts reads all scripts (*.test) of a folder, in the order of their names.
func Scripts(folder fs.FS) ([]Named, error) {
	files, err := fs.Glob(folder, "*.test")
	if err != nil {
		return nil, err
	}
	scripts := make([]Named, len(files))
	for i, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		scripts[i].Name = strings.TrimSuffix(file, ".test")
		if scripts[i].Script, err = Parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return scripts, nil
}

// A Rule is a rule of the specification or the contract that cases prove, or that no question can prove.
type Rule struct {
	Name  string
	Tests []string // that prove it where no question can: file and function
}

// ParseRules reads the inventory of rules: on each line a name, a colon and what it says, and after "->" the tests of
// a rule that no question can prove, with commas between them.
func ParseRules(text string) (rules []Rule, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, found := strings.Cut(line, ": ")
		if !found || !rule.MatchString(name) {
			return nil, fmt.Errorf("line %d: %q begins with no rule", i+1, line)
		}
		r := Rule{Name: name}
		if _, tests, found := strings.Cut(rest, " -> "); found {
			r.Tests = strings.Split(tests, ", ")
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Unproved says which rules have no case and name no test, and which cases prove a rule that is not in the inventory.
func Unproved(rules []Rule, steps []Step) (wrong []string) {
	proved := map[string]bool{}
	for _, step := range steps {
		for _, name := range step.Rules {
			proved[name] = true
			if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == name }) {
				wrong = append(wrong, fmt.Sprintf("the inventory lacks %q, which %q proves", name, step.Name))
			}
		}
	}
	for _, r := range rules {
		if !proved[r.Name] && len(r.Tests) == 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no case", r.Name))
		}
	}
	return wrong
}
