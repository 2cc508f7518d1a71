package olaptest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/conform"
)

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
		if !found {
			return nil, fmt.Errorf("line %d: %q has no name of a rule", i+1, line)
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
func Unproved(rules []Rule, steps []conform.Step) (wrong []string) {
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
