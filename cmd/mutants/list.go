package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed mutants.txt
var listed string

// A mutant is a change of one file that breaks one property.
type mutant struct {
	number   int    // from 1, in the order of the list
	file     string // from the top of the repository, with slashes
	text     string // what stands there, exactly once
	instead  string
	property string // which it breaks
	pkg      string // whose tests kill it, as ./olap
	tests    string // a regular expression
}

// String names it.
func (m mutant) String() string {
	return fmt.Sprintf("%2d %s: %s -> %s", m.number, m.file, m.text, strings.ReplaceAll(m.instead, "\n", `\n`))
}

var (
	form   = regexp.MustCompile(`(?m)^@ (\S+)\n- (.+)\n\+ ?(.*)\n= (.+)\n\? (\S+) (\S.*)$`)
	marked = regexp.MustCompile(`(?m)^[-@+=?].*$`)
)

// parse reads a list in the form that mutants.txt explains.
func parse(list string) (mutants []mutant, err error) {
	if line := marked.FindString(form.ReplaceAllString(list, "")); line != "" {
		return nil, fmt.Errorf("%q belongs to no mutant that is whole", line)
	}
	for n, f := range form.FindAllStringSubmatch(list, -1) {
		if _, err := regexp.Compile(f[6]); err != nil {
			return nil, err
		}
		mutants = append(mutants, mutant{number: n + 1, file: f[1], text: f[2],
			instead: strings.ReplaceAll(f[3], `\n`, "\n"), property: f[4], pkg: f[5], tests: f[6]})
	}
	return mutants, nil
}

// apply returns the mutant's file. It is an error when the text is not there exactly once: the list no longer fits the
// code.
func (m mutant) apply(root string) (content string, err error) {
	before, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(before), m.text); n != 1 {
		return "", fmt.Errorf("the text is there %d times: write it in mutants.txt as it is now", n)
	}
	return strings.Replace(string(before), m.text, m.instead, 1), nil
}
