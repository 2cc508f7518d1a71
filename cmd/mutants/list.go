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

// parse reads a list in the form that mutants.txt explains. Only lines that begin with one of the five marks count.
func parse(list string) (mutants []mutant, err error) {
	const marks = "@-+=?"
	next := 0 // of marks
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\n")
		mark := -1
		if line != "" {
			mark = strings.IndexByte(marks, line[0])
		}
		if mark < 0 {
			continue
		}
		if mark != next {
			return nil, fmt.Errorf("%q stands where a line with %q is missing", line, marks[next:next+1])
		}
		value := strings.TrimSpace(line[1:])
		if next == 0 {
			mutants = append(mutants, mutant{number: len(mutants) + 1})
		}
		m := &mutants[len(mutants)-1]
		switch next {
		case 0:
			m.file = value
		case 1:
			m.text = value
		case 2:
			m.instead = strings.ReplaceAll(value, `\n`, "\n")
		case 3:
			m.property = value
		case 4:
			m.pkg, m.tests, _ = strings.Cut(value, " ")
			if _, err := regexp.Compile(m.tests); err != nil || m.tests == "" {
				return nil, fmt.Errorf("%q has no regular expression of tests", line)
			}
		}
		if value == "" && mark != 2 {
			return nil, fmt.Errorf("mutant %d: %q is empty", m.number, line)
		}
		next = (next + 1) % len(marks)
	}
	if next != 0 {
		return nil, fmt.Errorf("the last mutant lacks a line with %q", marks[next:next+1])
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
