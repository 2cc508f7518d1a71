package query

import (
	"strings"
	"testing"
)

const valid = `{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01","end":"2026-01-31",` +
	`"timezone":"UTC"}}`

// with returns the valid request with more properties.
func with(properties string) string { return strings.TrimSuffix(valid, "}") + "," + properties + "}" }

func TestParseAcceptsEveryValidForm(t *testing.T) {
	for name, body := range map[string]string{
		"least": valid,
		"everything": with(`"dimensions":["agent_id","day"],"filters":[{"member":"user_type","op":"eq",` +
			`"value":"internal"},{"member":"day","op":"in","values":["2026-01-02","2026-01-02"]}],` +
			`"order":[{"member":"run_count","direction":"desc"},{"member":"day","direction":"asc"}],"limit":500`),
		"limit 1": with(`"limit":1`),
		"value of 200 code points": with(`"filters":[{"member":"agent_id","op":"eq","value":"` + strings.Repeat("😀", 200) +
			`"}]`),
		"cursor of 2048 characters": with(`"dimensions":["day"],"cursor":"` + strings.Repeat("a", 2048) + `"`),
		"empty lists":               with(`"dimensions":[],"filters":[],"order":[]`),
		"same member in two filters": with(`"filters":[{"member":"day","op":"eq","value":"2026-01-02"},{"member":"day",` +
			`"op":"eq","value":"2026-01-03"}]`),
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
		`{"metrics": ["run_count"],  "range":{"timezone":"UTC","end":"2026-01-31","start":"2026-01-01"},` +
			`"model":"agent_runs"}`,
		with(`"limit":100,"dimensions":[]`),
	} {
		if canonical(same) != want {
			t.Errorf("%s is another query than %s", same, valid)
		}
	}
	for _, other := range []string{with(`"limit":99`), with(`"dimensions":["day"]`),
		strings.Replace(valid, "2026-01-31", "2026-01-30", 1)} {
		if canonical(other) == want {
			t.Errorf("%s is the same query as %s", other, valid)
		}
	}
}
