package compile

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// Every part of a statement that rows of an answer come from has the condition of the caller's restriction: base rows,
// rows and aggregates of the rollup, the edges of the range, and the delta. What is only joined by run has none of its
// own. The numbers of parts are counted by hand.
func TestEveryPartOfAnAnswerIsNarrowed(t *testing.T) {
	const (
		agent = "0b7e4d2c-0000-4000-8000-000000000001"
		runs  = `{"model":"agent_runs","metrics":["run_count"],"range":`
		pairs = `{"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":`
		month = `{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}`
		edges = `{"start":"2025-02-01","end":"2026-01-31","timezone":"Asia/Kathmandu"}`
	)
	for _, c := range []struct {
		name, body string // the name means facts
		parts      int
	}{
		{"few", runs + month + `}`, 1},
		{"few", runs + month + `,"dimensions":["agent_id","user_identifier"]}`, 1},
		{"few_own_clock", runs + month + `,"dimensions":["day"]}`, 1},
		{"pairs_conflicts", pairs + month + `}`, 1},
		{"pairs_large", pairs + month + `,"dimensions":["agent_id"]}`, 2}, // once more for runs outside the join window
		{"pairs_of_a_year_large", pairs + edges + `}`, 1},
		{"rollup_unchanged", runs + month + `}`, 1},
		{"rollup_unchanged", runs + edges + `}`, 2},
		{"rollup", runs + month + `}`, 2},
		{"rollup", runs + edges + `}`, 3},
		{"rollup_cached_delta", runs + edges + `}`, 3},
		{"rollup_after_as_of", runs + month + `,"dimensions":["user_type"]}`, 2},
		{"rollup", runs + month + `,"dimensions":["user_identifier"]}`, 2},
	} {
		q, err := query.Parse([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		restriction, err := schema.NewRestriction(schema.Restriction{Agents: []string{agent}})
		if err != nil {
			t.Fatal(err)
		}
		if q, err = q.Narrow(restriction, time.Now()); err != nil {
			t.Fatal(err)
		}
		p := plan.Of(q).Plan(factsOf(c.name))
		s := Compile(Input{Plan: p, Organization: "acme"})
		if got := strings.Count(s.SQL, "(f_agent_id IN {filter_0_ids:Array(UUID)})"); got != c.parts {
			t.Errorf("%s, %s from %s, delta %q: %d parts are narrowed, not %d\n%s",
				c.name, c.body, p.Strategy, p.Delta, got, c.parts, s.SQL)
		}
	}
}
