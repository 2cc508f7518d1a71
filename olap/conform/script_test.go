package conform_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/conform"
)

const script = `
# three steps
load
    agent {"agent_id": "@1", "name": "Support"}
    run {"run_id": "@1", "created_at": "2026-01-05T10:00:00Z"}

query spec 4.2.2, contract 4.7: totals of the other one as globex
    {"model": "agent_runs",
     "metrics": ["run_count"]}
columns agent_id:string:agent_id run_count:number:run_count
range 2026-01-01T00:00:00.000Z 2026-02-01T00:00:00.000Z
expect
    ["@1", 2, null]
next
    ["@2", 1, null]
more
soon
warnings a b
query spec 2.10 model: refused
    {}
fail invalid_query model
`

func parse(t *testing.T, text string) conform.Script {
	t.Helper()
	s, err := conform.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := parse(t, script)
	if len(s.Steps) != 3 {
		t.Fatalf("%d steps, want 3", len(s.Steps))
	}
	one := conform.ShortID(1).String()
	for i, want := range []conform.Step{
		{Line: 3, Records: []conform.Record{
			{"record": "agent", "organization_id": "acme", "agent_id": one, "name": "Support",
				"updated_at": "2026-01-01T00:00:00Z"},
			{"record": "run", "organization_id": "acme", "agent_id": one, "run_id": one, "kind": "agent", "status": "COMPLETED",
				"created_at": "2026-01-05T10:00:00Z", "updated_at": "2026-01-05T10:00:00Z"},
		}},
		{
			Line: 7, Name: "spec 4.2.2, contract 4.7: totals of the other one", Rules: []string{"spec 4.2.2", "contract 4.7"},
			Organization: "globex", Body: `{"model": "agent_runs","metrics": ["run_count"]}`,
			Columns: []conform.Column{{"agent_id", "string", "agent_id"}, {"run_count", "number", "run_count"}},
			Start:   "2026-01-01T00:00:00.000Z", End: "2026-02-01T00:00:00.000Z",
			Pages: []conform.Rows{{{one, 2.0, nil}}, {{conform.ShortID(2).String(), 1.0, nil}}}, More: true, Soon: true,
			Warnings: []string{"a", "b"},
		},
		{
			Line: 19, Name: "spec 2.10 model: refused", Rules: []string{"spec 2.10 model"}, Organization: "acme", Body: "{}",
			FailCode: "invalid_query", FailParam: "model",
		},
	} {
		if !reflect.DeepEqual(s.Steps[i], want) {
			t.Errorf("step %d:\n got %+v\nwant %+v", i, s.Steps[i], want)
		}
	}
	renamed := s.Rename(func(name string) string { return "x-" + name })
	if got := renamed.Steps[1].Organization + " " + renamed.Steps[0].Records[0].Organization() + " " +
		s.Steps[0].Records[0].Organization(); got != "x-globex x-acme acme" {
		t.Errorf("renamed: %s", got)
	}
}

// A case that would test nothing must not pass.
func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown word":           "query spec 1: a\n  {}\nexpec\n",
		"unknown kind":           "load\n  row {}\n",
		"record that is no JSON": "load\n  run {\n",
		"query without answer":   "query spec 1: a\n  {}\n",
		"two outcomes":           "query spec 1: a\n  {}\nexpect\nfail invalid_query\n",
		"answer without query":   "expect\n  [1]\n",
		"answer after records":   "load\nexpect\n  [1]\n",
		"page without a first":   "query spec 1: a\n  {}\nnext\n  [1]\n",
		"row that is no JSON":    "query spec 1: a\n  {}\nexpect\n  1, 2\n",
		"lines outside a step":   "  run {}\n",
		"query without a name":   "query\n  {}\n",
		"query without a rule":   "query everything\n  {}\nexpect\n",
		"unknown rule":           "query specs 1: a\n  {}\nexpect\n",
		"half a range":           "query spec 1: a\n  {}\nrange 2026-01-01T00:00:00.000Z\nexpect\n",
		"half a column":          "query spec 1: a\n  {}\ncolumns day\nexpect\n",
	} {
		if _, err := conform.Parse(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// answers are what a server gives, by cursor.
func answers(pages map[string]conform.Answer) conform.Asker {
	return func(_, body string) (conform.Answer, error) {
		_, rest, _ := strings.Cut(body, `"cursor": "`)
		name, _, _ := strings.Cut(rest, `"`)
		return pages[name], nil
	}
}

// Whatever differs is found; each change of a right answer is one difference.
func TestCheck(t *testing.T) {
	step := parse(t, `query spec 2.14 rows: two pages
    {"model": "agent_runs"}
columns day:date:day
range a b
expect
    ["x"]
next
    [null]
warnings w
`).Steps[0]
	right := func() map[string]conform.Answer {
		page := conform.Answer{AsOf: "1", Start: "a", End: "b", Columns: []conform.Column{{"day", "date", "day"}},
			Warnings: []conform.Warning{{"non_additive_metric", "w", "text"}}}
		first, second := page, page
		first.Rows, first.Cursor, second.Rows = conform.Rows{{"x"}}, "c", conform.Rows{{nil}}
		return map[string]conform.Answer{"": first, "c": second}
	}
	check := func(pages map[string]conform.Answer, step conform.Step) []string {
		runner := conform.Runner{Ask: answers(pages)}
		differences, err := runner.Check(step)
		if err != nil {
			t.Fatal(err)
		}
		return differences
	}
	if d := check(right(), step); d != nil {
		t.Errorf("a right answer differs: %q", d)
	}
	for name, change := range map[string]func(first, second *conform.Answer){
		"a value":       func(_, second *conform.Answer) { second.Rows = conform.Rows{{0.0}} },
		"a row more":    func(first, _ *conform.Answer) { first.Rows = append(first.Rows, first.Rows[0]) },
		"column":        func(first, _ *conform.Answer) { first.Columns = []conform.Column{{"day", "string", "day"}} },
		"range":         func(first, _ *conform.Answer) { first.End = "c" },
		"warning":       func(first, _ *conform.Answer) { first.Warnings = nil },
		"warning code":  func(first, _ *conform.Answer) { first.Warnings = []conform.Warning{{"other", "w", "text"}} },
		"no cursor":     func(first, _ *conform.Answer) { first.Cursor = "" },
		"a page more":   func(_, second *conform.Answer) { second.Cursor = "d" },
		"another asOf":  func(_, second *conform.Answer) { second.AsOf = "2" },
		"refused":       func(first, _ *conform.Answer) { *first = conform.Answer{FailCode: "invalid_query"} },
		"later refused": func(_, second *conform.Answer) { *second = conform.Answer{AsOf: "1", FailCode: "invalid_cursor"} },
	} {
		pages := right()
		first, second := pages[""], pages["c"]
		change(&first, &second)
		if d := check(map[string]conform.Answer{"": first, "c": second}, step); len(d) != 1 {
			t.Errorf("%s: differences %q, want one", name, d)
		}
	}
	refused := conform.Step{Body: "{}", FailCode: "invalid_query", FailParam: "limit"}
	for answer, want := range map[*conform.Answer]int{
		{FailCode: "invalid_query", FailParam: "limit"}:    0,
		{FailCode: "invalid_query", FailParam: "range"}:    1,
		{FailCode: "unknown_member", FailParam: "limit"}:   1,
		{Rows: conform.Rows{{1.0}}, Cursor: "not refused"}: 1,
	} {
		if d := check(map[string]conform.Answer{"": *answer}, refused); len(d) != want {
			t.Errorf("%+v: differences %q, want %d", answer, d, want)
		}
	}
}

// "@cursor" is the cursor of the question before, which a refusal in between leaves as it is.
func TestCheckContinuesAnotherQuestion(t *testing.T) {
	steps := parse(t, `query spec 4.2.4: first
    {"limit": 1}
expect
more
query spec 4.2.4: refused
    {"limit": 0}
fail invalid_query limit
query spec 4.2.4: continued
    {"limit": 1, "cursor": "@cursor"}
expect
next
`).Steps
	var bodies []string
	runner := conform.Runner{Ask: func(_, body string) (conform.Answer, error) {
		bodies = append(bodies, body)
		return []conform.Answer{{Rows: conform.Rows{}, Cursor: "abc"}, {FailCode: "invalid_query", FailParam: "limit"},
			{Rows: conform.Rows{}, Cursor: "def"}, {Rows: conform.Rows{}}}[len(bodies)-1], nil
	}}
	for _, step := range steps {
		if d, err := runner.Check(step); d != nil || err != nil {
			t.Errorf("%s: %q, %v", step.Name, d, err)
		}
	}
	want := []string{`{"limit": 1, "cursor": "abc"}`, `{"limit": 1, "cursor": "def"}`}
	if !reflect.DeepEqual(bodies[2:], want) {
		t.Errorf("sent %q, want %q", bodies[2:], want)
	}
}
