package olaptest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A Script is a file of query cases: steps that load records or run a query, in order.
//
//	# a comment
//	load
//	    agent {"agent_id": "@1", "name": "Support"}
//	    run {"run_id": "@1", "created_at": "2026-01-05T10:00:00Z", "status": "FAILED"}
//	    attribution {…}
//
//	query what it shows [as ORGANIZATION]
//	    {"model": "agent_runs", …}
//	expect
//	    ["2026-01-05", 1]
//	warnings member member
//
// Instead of expect and rows, "fail CODE PARAM" says how the query is refused. A record leaves out
// what does not matter: the organization is acme, identifiers written @N are UUIDs, and the
// fields that every record needs have plain defaults.
type Script struct{ Steps []Step }

// A Step either loads Records or runs Query.
type Step struct {
	Line         int
	Records      *Records
	Name         string
	Organization string
	Query        string
	Rows         [][]any
	Warnings     []string // nil where the case does not say
	FailCode     string
	FailParam    string
}

var (
	queryLine = regexp.MustCompile(`^query (.+?)(?: as (\S+))?$`)
	shortID   = regexp.MustCompile(`"@(\d+)"`)
)

// ParseScript reads a script. The error names the line.
func ParseScript(text string) (Script, error) {
	var s Script
	var last *Step
	section := ""
	for i, line := range strings.Split(text, "\n") {
		fail := func(err error) (Script, error) { return s, fmt.Errorf("line %d: %w", i+1, err) }
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if line != strings.TrimLeft(line, " \t") {
			if last == nil {
				return fail(fmt.Errorf("indented line outside a step"))
			}
			if err := last.add(section, trimmed); err != nil {
				return fail(err)
			}
			continue
		}
		word, rest, _ := strings.Cut(trimmed, " ")
		switch word {
		case "load":
			s.Steps = append(s.Steps, Step{Line: i + 1, Records: &Records{}})
			last = &s.Steps[len(s.Steps)-1]
		case "query":
			parts := queryLine.FindStringSubmatch(trimmed)
			if parts == nil {
				return fail(fmt.Errorf("a query needs a name"))
			}
			step := Step{Line: i + 1, Name: parts[1], Organization: parts[2]}
			if step.Organization == "" {
				step.Organization = "acme"
			}
			s.Steps = append(s.Steps, step)
			last = &s.Steps[len(s.Steps)-1]
		case "expect":
			if last == nil || last.Query == "" {
				return fail(fmt.Errorf("expect without a query"))
			}
			last.Rows = [][]any{}
		case "warnings":
			last.Warnings = append([]string{}, strings.Fields(rest)...)
		case "fail":
			last.FailCode, last.FailParam, _ = strings.Cut(rest, " ")
		default:
			return fail(fmt.Errorf("unknown word %q", word))
		}
		section = word
	}
	for _, step := range s.Steps {
		if step.Records == nil && step.Rows == nil && step.FailCode == "" {
			return s, fmt.Errorf("line %d: the query expects nothing", step.Line)
		}
	}
	return s, nil
}

func (s *Step) add(section, line string) error {
	switch section {
	case "load":
		return s.Records.add(line)
	case "query":
		s.Query += expand(line)
		return nil
	case "expect":
		var row []any
		if err := json.Unmarshal([]byte(expand(line)), &row); err != nil {
			return err
		}
		s.Rows = append(s.Rows, row)
		return nil
	default:
		return fmt.Errorf("%s takes no indented lines", section)
	}
}

// expand writes short identifiers out: "@7" is the UUID that ends in 7.
func expand(line string) string {
	return shortID.ReplaceAllStringFunc(line, func(short string) string {
		n, _ := strconv.Atoi(strings.Trim(short, `"@`))
		return `"` + ShortID(n).String() + `"`
	})
}

// ShortID is the UUID that scripts write as @n.
func ShortID(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
}

func (r *Records) add(line string) error {
	kind, body, _ := strings.Cut(line, " ")
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	decode := func(into any) error {
		d := json.NewDecoder(strings.NewReader(expand(body)))
		d.DisallowUnknownFields()
		return d.Decode(into)
	}
	switch kind {
	case "agent":
		a := Agent{Organization: "acme", UpdatedAt: created}
		err := decode(&a)
		r.Agents = append(r.Agents, a)
		return err
	case "run":
		v := Run{Organization: "acme", AgentID: ShortID(1), Kind: "agent", Status: "COMPLETED"}
		err := decode(&v)
		if v.UpdatedAt.IsZero() {
			v.UpdatedAt = v.CreatedAt
		}
		r.Runs = append(r.Runs, v)
		return err
	case "attribution":
		a := Attribution{Organization: "acme", AgentID: ShortID(1), Activity: "interacted", InitiationType: "human",
			Source: "web"}
		err := decode(&a)
		r.Attributions = append(r.Attributions, a)
		return err
	default:
		return fmt.Errorf("unknown record kind %q", kind)
	}
}
