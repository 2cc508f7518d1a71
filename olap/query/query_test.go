package query

import (
	"errors"
	"strings"
	"testing"
)

const valid = `{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`

// with returns the valid request with more properties.
func with(properties string) string { return strings.TrimSuffix(valid, "}") + "," + properties + "}" }

func TestParseAcceptsEveryValidForm(t *testing.T) {
	for name, body := range map[string]string{
		"least":                      valid,
		"everything":                 with(`"dimensions":["agent_id","day"],"filters":[{"member":"user_type","op":"eq","value":"internal"},{"member":"day","op":"in","values":["2026-01-02","2026-01-02"]}],"order":[{"member":"run_count","direction":"desc"},{"member":"day","direction":"asc"}],"limit":500`),
		"limit 1":                    with(`"limit":1`),
		"value of 200 code points":   with(`"filters":[{"member":"agent_id","op":"eq","value":"` + strings.Repeat("😀", 200) + `"}]`),
		"cursor of 2048 characters":  with(`"dimensions":["day"],"cursor":"` + strings.Repeat("a", 2048) + `"`),
		"empty lists":                with(`"dimensions":[],"filters":[],"order":[]`),
		"same member in two filters": with(`"filters":[{"member":"day","op":"eq","value":"2026-01-02"},{"member":"day","op":"eq","value":"2026-01-03"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckSyntax([]byte(body)); err != nil {
				t.Fatal(err)
			}
			if _, err := Parse([]byte(body)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	manyValues := strings.TrimSuffix(strings.Repeat(`"a",`, 51), ",")
	for _, c := range []struct {
		rule, body string
		code       Code
		param      string
	}{
		{"2.10 strict: unknown property", with(`"extra":1`), InvalidQuery, "extra"},
		{"2.10 strict: letter case", with(`"Limit":1`), InvalidQuery, "Limit"},
		{"contract 4.10: duplicate key", with(`"model":"agent_runs"`), InvalidQuery, "model"},
		{"contract 4.10: duplicate key below", with(`"filters":[{"member":"day","op":"eq","op":"eq","value":"2026-01-01"}]`), InvalidQuery, "filters[0].op"},
		{"contract 4.17: null for an optional field", with(`"limit":null`), InvalidQuery, "limit"},
		{"contract 4.17: null dimensions", with(`"dimensions":null`), InvalidQuery, "dimensions"},
		{"2.10 not an object", `[]`, InvalidQuery, ""},
		{"2.10 model required", `{"metrics":["run_count"],"range":{}}`, InvalidQuery, "model"},
		{"2.10 model type", strings.Replace(valid, `"agent_runs"`, `7`, 1), InvalidQuery, "model"},
		{"contract 4.4: unknown model", strings.Replace(valid, `agent_runs`, `agents`, 1), InvalidQuery, "model"},
		{"2.10 metrics empty", strings.Replace(valid, `["run_count"]`, `[]`, 1), InvalidQuery, "metrics"},
		{"2.10 metrics repeat", strings.Replace(valid, `["run_count"]`, `["run_count","run_count"]`, 1), InvalidQuery, "metrics[1]"},
		{"2.10 metrics over 16", strings.Replace(valid, `["run_count"]`, `["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]`, 1), InvalidQuery, "metrics"},
		{"4.2 rule 12: unknown metric", strings.Replace(valid, `run_count`, `runs`, 1), UnknownMember, "runs"},
		{"contract 4.17: unknown of 64", strings.Replace(valid, `run_count`, strings.Repeat("x", 64), 1), UnknownMember, strings.Repeat("x", 64)},
		{"contract 4.17: 65 characters", strings.Replace(valid, `run_count`, strings.Repeat("x", 65), 1), InvalidQuery, "metrics[0]"},
		{"contract 4.4: dimension in metrics", strings.Replace(valid, `run_count`, `day`, 1), InvalidQuery, "metrics[0]"},
		{"contract 4.4: metric in dimensions", with(`"dimensions":["run_count"]`), InvalidQuery, "dimensions[0]"},
		{"contract 4.19: companion as dimension", with(`"dimensions":["agent_name"]`), UnknownMember, "agent_name"},
		{"contract 4.19: companion in filter", with(`"filters":[{"member":"user_name","op":"eq","value":"x"}]`), UnknownMember, "user_name"},
		{"contract 4.4: other model's dimension", with(`"dimensions":["source"]`), UnknownMember, "source"},
		{"2.10 dimensions over 8", with(`"dimensions":["a","b","c","d","e","f","g","h","i"]`), InvalidQuery, "dimensions"},
		{"2.10 dimensions repeat", with(`"dimensions":["day","day"]`), InvalidQuery, "dimensions[1]"},
		{"2.11 metric in filter", with(`"filters":[{"member":"run_count","op":"eq","value":"1"}]`), InvalidQuery, "filters[0].member"},
		{"2.11 operator", with(`"filters":[{"member":"day","op":"ne","value":"2026-01-01"}]`), InvalidQuery, "filters[0].op"},
		{"2.11 eq with values", with(`"filters":[{"member":"day","op":"eq","values":["2026-01-01"]}]`), InvalidQuery, "filters[0].values"},
		{"2.11 in with value", with(`"filters":[{"member":"day","op":"in","value":"2026-01-01"}]`), InvalidQuery, "filters[0].value"},
		{"2.11 in without values", with(`"filters":[{"member":"day","op":"in","values":[]}]`), InvalidQuery, "filters[0].values"},
		{"2.11 in over 50", with(`"filters":[{"member":"agent_id","op":"in","values":[` + manyValues + `]}]`), InvalidQuery, "filters[0].values"},
		{"2.11 empty value", with(`"filters":[{"member":"agent_id","op":"eq","value":""}]`), InvalidQuery, "filters[0].value"},
		{"2.11 value of 201", with(`"filters":[{"member":"agent_id","op":"eq","value":"` + strings.Repeat("é", 201) + `"}]`), InvalidQuery, "filters[0].value"},
		{"contract 4.6: day filter", with(`"filters":[{"member":"day","op":"in","values":["2026-01-01","2026-02-30"]}]`), InvalidQuery, "filters[0].values[1]"},
		{"contract 4.6: day filter form", with(`"filters":[{"member":"day","op":"eq","value":"2026-1-1"}]`), InvalidQuery, "filters[0].value"},
		{"2.12 range required", `{"model":"agent_runs","metrics":["run_count"]}`, InvalidQuery, "range"},
		{"2.12 start required", strings.Replace(valid, `"start":"2026-01-01",`, ``, 1), InvalidQuery, "range.start"},
		{"2.12 no such day", strings.Replace(valid, `2026-01-31`, `2026-02-29`, 1), InvalidQuery, "range.end"},
		{"2.12 start after end", strings.Replace(valid, `2026-01-01`, `2026-02-01`, 1), InvalidQuery, "range.start"},
		{"2.12 alias zone", strings.Replace(valid, `"UTC"`, `"US/Eastern"`, 1), InvalidQuery, "range.timezone"},
		{"4.2 rule 13: 367 days", strings.Replace(valid, `2026-01-31`, `2027-01-02`, 1), RangeTooLarge, "range"},
		{"4.2 rule 2: totals with order", with(`"order":[{"member":"run_count","direction":"asc"}]`), InvalidQuery, "order"},
		{"4.2 rule 2: totals with cursor", with(`"cursor":"x"`), InvalidCursor, "cursor"},
		{"4.2 rule 5: metric order with cursor", with(`"dimensions":["day"],"order":[{"member":"run_count","direction":"asc"}],"cursor":"x"`), InvalidCursor, "cursor"},
		{"4.2 rule 3: order not selected", with(`"dimensions":["day"],"order":[{"member":"failed_run_count","direction":"asc"}]`), InvalidQuery, "order[0].member"},
		{"2.13 order repeat", with(`"dimensions":["day"],"order":[{"member":"day","direction":"asc"},{"member":"day","direction":"desc"}]`), InvalidQuery, "order[1].member"},
		{"2.13 direction", with(`"dimensions":["day"],"order":[{"member":"day","direction":"ASC"}]`), InvalidQuery, "order[0].direction"},
		{"2.13 direction required", with(`"dimensions":["day"],"order":[{"member":"day"}]`), InvalidQuery, "order[0].direction"},
		{"contract 4.4: unknown in order", with(`"dimensions":["day"],"order":[{"member":"nope","direction":"asc"}]`), UnknownMember, "nope"},
		{"2.10 limit 0", with(`"limit":0`), InvalidQuery, "limit"},
		{"2.10 limit 501", with(`"limit":501`), InvalidQuery, "limit"},
		{"contract 4.10: 1e2", with(`"limit":1e2`), InvalidQuery, "limit"},
		{"contract 4.10: 100.0", with(`"limit":100.0`), InvalidQuery, "limit"},
		{"2.10 limit as a string", with(`"limit":"100"`), InvalidQuery, "limit"},
		{"2.10 cursor empty", with(`"dimensions":["day"],"cursor":""`), InvalidQuery, "cursor"},
		{"2.10 cursor of 2049", with(`"dimensions":["day"],"cursor":"` + strings.Repeat("a", 2049) + `"`), InvalidQuery, "cursor"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if err := CheckSyntax([]byte(c.body)); err != nil {
				t.Fatalf("well-formed JSON is judged later: %v", err)
			}
			_, err := Parse([]byte(c.body))
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("accepted: %v", err)
			}
			if refused.Code != c.code || refused.Param != c.param {
				t.Errorf("got %s at %q, want %s at %q (%s)", refused.Code, refused.Param, c.code, c.param, refused.Reason)
			}
		})
	}
}

// Spec 5.2 and contract 4.18: these are refused before authentication.
func TestCheckSyntaxRefusesMalformedJSON(t *testing.T) {
	for name, body := range map[string]string{
		"empty":          "",
		"cut off":        valid[:len(valid)-1],
		"trailing data":  valid + "{}",
		"bare word":      "hello",
		"invalid UTF-8":  strings.Replace(valid, "run_count", "run\xff", 1),
		"lone surrogate": strings.Replace(valid, "run_count", `\ud800`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			var refused *Error
			if err := CheckSyntax([]byte(body)); !errors.As(err, &refused) || refused.Code != InvalidQuery {
				t.Errorf("got %v, want invalid_query", err)
			}
		})
	}
}

// Contract 4.17: key order, white space and spelled-out defaults do not change a query, its limit does.
func TestCanonical(t *testing.T) {
	canonical := func(body string) string {
		q, err := Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return string(q.Canonical())
	}
	want := canonical(valid)
	for _, same := range []string{
		`{"metrics": ["run_count"],  "range":{"timezone":"UTC","end":"2026-01-31","start":"2026-01-01"},"model":"agent_runs"}`,
		with(`"limit":100,"dimensions":[]`),
	} {
		if canonical(same) != want {
			t.Errorf("%s is another query than %s", same, valid)
		}
	}
	for _, other := range []string{with(`"limit":99`), with(`"dimensions":["day"]`), strings.Replace(valid, "2026-01-31", "2026-01-30", 1)} {
		if canonical(other) == want {
			t.Errorf("%s is the same query as %s", other, valid)
		}
	}
}
