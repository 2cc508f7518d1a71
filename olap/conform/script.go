// Package conform reads scripts of query cases and says where a server's answers differ from them. It knows neither a
// store nor HTTP: who runs a script loads its records and asks its questions. testdata/queries/README.md describes the
// language. It is pure.
package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A Script is a file of query cases: steps that load records or ask a question, in order.
type Script struct{ Steps []Step }

// A Step either loads Records or asks the question of a case.
type Step struct {
	Line    int
	Records []Record // nil for a question

	Name         string   // with its rules
	Rules        []string // that the case proves, such as "spec 4.2.9"
	Organization string
	Body         string // of the request

	Columns    []Column // nil where the case does not say
	Start, End string   // UTC bounds of the range; empty where the case does not say
	Pages      []Rows   // nil for a refusal
	More       bool     // a page follows that the case leaves out
	Soon       bool     // the answer may be another one for a while after the records are stored
	Warnings   []string // members; nil where the case does not say

	FailCode, FailParam string // of a refusal
}

// Rows are a page of an answer: strings, float64s and nil.
type Rows [][]any

// A Column describes a position of every row (spec 2.14).
type Column struct{ Name, Type, Member string }

var (
	queryLine = regexp.MustCompile(`^query (([^:]+): .+?)(?: as (\S+))?$`)
	rule      = regexp.MustCompile(`^(spec|contract) [0-9]+(\.[0-9]+)*( [a-z_]+)?$`)
)

// Parse reads a script. The error names the line.
func Parse(text string) (Script, error) {
	var s Script
	section := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		var err error
		if line != strings.TrimLeft(line, " \t") {
			err = s.indented(section, trimmed)
		} else {
			var rest string
			section, rest, _ = strings.Cut(trimmed, " ")
			err = s.keyword(section, rest, i+1)
		}
		if err != nil {
			return s, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, step := range s.Steps {
		if step.Records == nil && (step.Pages == nil) == (step.FailCode == "") {
			return s, fmt.Errorf("line %d: a query needs either expect or fail", step.Line)
		}
	}
	return s, nil
}

// keyword begins a step or a part of the last one.
func (s *Script) keyword(word, rest string, line int) error {
	switch word {
	case "load":
		s.Steps = append(s.Steps, Step{Line: line, Records: []Record{}})
		return nil
	case "query":
		step, err := parseQuery(word + " " + rest)
		step.Line = line
		s.Steps = append(s.Steps, step)
		return err
	}
	if len(s.Steps) == 0 || s.last().Body == "" {
		return fmt.Errorf("%s without a query", word)
	}
	step := s.last()
	switch word {
	case "columns":
		step.Columns = []Column{}
		for text := range strings.FieldsSeq(rest) {
			parts := strings.Split(text, ":")
			if len(parts) != 3 {
				return fmt.Errorf("%q is not NAME:TYPE:MEMBER", text)
			}
			step.Columns = append(step.Columns, Column{parts[0], parts[1], parts[2]})
		}
	case "range":
		var found bool
		if step.Start, step.End, found = strings.Cut(rest, " "); !found {
			return errors.New("range needs two instants")
		}
	case "expect":
		step.Pages = []Rows{{}}
	case "next":
		if step.Pages == nil {
			return errors.New("next without expect")
		}
		step.Pages = append(step.Pages, Rows{})
	case "more":
		step.More = true
	case "soon":
		step.Soon = true
	case "warnings":
		step.Warnings = append([]string{}, strings.Fields(rest)...)
	case "fail":
		step.FailCode, step.FailParam, _ = strings.Cut(rest, " ")
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return nil
}

func parseQuery(line string) (Step, error) {
	parts := queryLine.FindStringSubmatch(line)
	if parts == nil {
		return Step{}, errors.New("a query needs its rules, a colon and what it shows")
	}
	step := Step{Name: parts[1], Organization: parts[3], Rules: strings.Split(parts[2], ", ")}
	if step.Organization == "" {
		step.Organization = defaultOrganization
	}
	for _, r := range step.Rules {
		if !rule.MatchString(r) {
			return step, fmt.Errorf("%q is no rule such as spec 4.2.9", r)
		}
	}
	return step, nil
}

func (s *Script) last() *Step { return &s.Steps[len(s.Steps)-1] }

// indented reads a line that belongs to the last keyword.
func (s *Script) indented(section, line string) error {
	switch section {
	case "load":
		record, err := parseRecord(line)
		s.last().Records = append(s.last().Records, record)
		return err
	case "query":
		s.last().Body += expand(line)
		return nil
	case "expect", "next":
		var row []any
		if err := json.Unmarshal([]byte(expand(line)), &row); err != nil {
			return err
		}
		page := &s.last().Pages[len(s.last().Pages)-1]
		*page = append(*page, row)
		return nil
	}
	return fmt.Errorf("%q takes no indented lines", section)
}

// Rename gives every organization of the script another name.
func (s Script) Rename(name func(string) string) Script {
	steps := make([]Step, len(s.Steps))
	for i, step := range s.Steps {
		step.Organization = name(step.Organization)
		records := step.Records
		if records != nil {
			step.Records = make([]Record, len(records))
		}
		for j, r := range records {
			step.Records[j] = r.in(name(r.Organization()))
		}
		steps[i] = step
	}
	return Script{steps}
}
