package olaptest

import (
	"strings"
	"testing"
)

const script = `
# two steps
load
    agent {"agent_id": "@1", "name": "Support"}
    run {"run_id": "@1", "created_at": "2026-01-05T10:00:00Z"}

query totals of the other one as globex
    {"model": "agent_runs",
     "metrics": ["run_count"]}
expect
    ["@1", 2, null]
warnings a b
query refused
    {}
fail invalid_query model
`

func TestParseScript(t *testing.T) {
	s, err := ParseScript(script)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Steps) != 3 {
		t.Fatalf("%d steps, want 3", len(s.Steps))
	}
	load, totals, refused := s.Steps[0], s.Steps[1], s.Steps[2]
	if len(load.Records.Agents) != 1 || len(load.Records.Runs) != 1 || load.Records.Runs[0].Organization != "acme" ||
		load.Records.Runs[0].UpdatedAt.IsZero() {
		t.Errorf("loaded %+v", load.Records)
	}
	if totals.Organization != "globex" || totals.Name != "totals of the other one" ||
		!strings.Contains(totals.Query, `"metrics"`) {
		t.Errorf("parsed %+v", totals)
	}
	if len(totals.Rows) != 1 || totals.Rows[0][0] != ShortID(1).String() || totals.Rows[0][1] != 2.0 ||
		totals.Rows[0][2] != nil {
		t.Errorf("expects %v", totals.Rows)
	}
	if len(totals.Warnings) != 2 || refused.FailCode != "invalid_query" || refused.FailParam != "model" {
		t.Errorf("expects %v, %v", totals.Warnings, refused)
	}
}

// A case that would test nothing must not pass.
func TestParseScriptRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown word":         "lod\n",
		"unknown kind":         "load\n  row {}\n",
		"unknown field":        "load\n  run {\"id\": \"@1\"}\n",
		"query without answer": "query a\n  {}\n",
		"answer without query": "expect\n  [1]\n",
		"row that is no JSON":  "query a\n  {}\nexpect\n  1, 2\n",
		"lines outside a step": "  run {}\n",
		"query without a name": "query\n  {}\n",
	} {
		if _, err := ParseScript(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
