package olap_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

// What is in the store of these tests: six runs that count and six attribution records, worked by hand.
func handWorked() olaptest.Records {
	person := func(s string) *string { return &s }
	run := func(n, day, agent int, identifier, class *string, status string) olaptest.Run {
		r := runOn(n, day, status)
		r.AgentID, r.Identifier, r.Type = olaptest.ID(agent), identifier, class
		return r
	}
	ada, bob, cy := person("ada@example.com"), person("bob@example.org"), person("cy@example.com")
	internal := person("internal")
	moved := run(7, 3, 2, cy, internal, "RUNNING") // and then of another agent
	sub := run(6, 1, 1, ada, internal, "COMPLETED")
	sub.Kind = "sub_agent"
	records := olaptest.Records{Runs: []olaptest.Run{
		run(1, 1, 1, ada, internal, "COMPLETED"), run(2, 1, 1, bob, person("external"), "FAILED"),
		run(3, 2, 2, ada, internal, "COMPLETED"), run(4, 2, 2, nil, nil, "RUNNING"),
		run(5, 3, 1, person("cron@example.com"), person("automated"), "COMPLETED"), sub, moved,
	}}
	moved.AgentID, moved.Status, moved.UpdatedAt = olaptest.ID(1), "COMPLETED", moved.UpdatedAt.Add(time.Hour)
	records.Runs = append(records.Runs, moved)
	for n, a := range []struct {
		run, agent, day  int
		person, activity string
	}{
		{1, 1, 1, "ada@example.com", "initiated"}, {1, 1, 1, "bob@example.org", "interacted"},
		{2, 1, 1, "bob@example.org", "initiated"}, {3, 2, 2, "+15550100", "associated"},
		{4, 2, 2, "ada@example.com", "interacted"}, {4, 2, 2, "ada@example.com", "interacted"},
	} {
		records.Attributions = append(records.Attributions, olaptest.Attribution{
			Organization: "acme", ID: olaptest.ID(n + 1), RunID: olaptest.ShortID(a.run), AgentID: olaptest.ID(a.agent),
			Identifier: a.person, Activity: a.activity, InitiationType: "human", Source: "web",
			OccurredAt: time.Date(2026, 1, a.day, 12, 0, 0, 0, time.UTC),
		})
	}
	return records
}

var (
	agent1, agent2 = olaptest.ID(1).String(), olaptest.ID(2).String()

	pairsOf = olaptest.Query{Model: "agent_user_activity", Range: january, Limit: 100,
		Metrics: []string{"attributed_run_count", "interaction_count", "completed_attributed_run_count"}}
)

func by(q olaptest.Query, dimension string) olaptest.Query {
	q.Dimensions = []string{dimension}
	return q
}

func only(q olaptest.Query, member, value string) olaptest.Query {
	q.Filters = []olaptest.Filter{{Member: member, Op: "eq", Value: value}}
	return q
}

// Which rows each part of a restriction lets through, in each model, and which groups have enough people.
func TestWhatEachRestrictionLetsThrough(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	olaptest.Load(t, store.Conn(), handWorked())
	refreshed(t, rollup.New(store.Conn(), quiet, 0))
	var engines []*olap.Engine
	for _, options := range []plan.Options{{}, asLarge, {Records: asLarge.Records, NoPairGroups: true}} {
		engines = append(engines, engineWith(store.Conn(), options))
	}
	one := olaptest.Key{Agents: []string{agent1}}
	ada := olaptest.Key{People: []string{"ada@example.com"}}
	com := olaptest.Key{Domains: []string{"example.com"}}
	atLeast := func(n int) olaptest.Key { return olaptest.Key{MinPeople: n} }
	for _, c := range []struct {
		key  olaptest.Key
		q    olaptest.Query
		want string
	}{
		{olaptest.Key{}, totals, "[[6]]"},
		{one, totals, "[[4]]"}, // the run that moved to it is its own now
		{olaptest.Key{Agents: []string{agent2}}, totals, "[[2]]"},
		{ada, totals, "[[2]]"},
		{com, totals, "[[4]]"}, // an automated initiator with an address of the domain too
		{olaptest.Key{Agents: []string{agent1}, Domains: []string{"example.com"}}, totals, "[[3]]"},
		{olaptest.Key{Agents: []string{agent1, agent2}}, by(totals, "user_type"),
			"[[automated 1] [external 1] [internal 3] [<nil> 1]]"},
		{com, by(totals, "user_identifier"),
			"[[ada@example.com <nil> 2] [cron@example.com <nil> 1] [cy@example.com <nil> 1]]"},
		// A filter for what is outside finds what a filter for nobody finds.
		{one, only(totals, "agent_id", agent2), "[[0]]"}, {one, only(totals, "agent_id", "nobody"), "[[0]]"},
		{ada, only(by(totals, "day"), "user_identifier", "bob@example.org"), "[]"},
		{ada, only(by(totals, "day"), "user_identifier", "nobody@example.org"), "[]"},
		// Agent 2 has one person and a run of nobody, the third day one person and an automated initiator.
		{atLeast(2), by(totals, "agent_id"), "[[" + agent1 + " <nil> 4]]"},
		{atLeast(2), by(totals, "day"), "[[2026-01-01 2]]"},
		{atLeast(3), totals, "[[6]]"}, {atLeast(4), totals, "[[<nil>]]"},
		{atLeast(4), only(totals, "agent_id", "nobody"), "[[<nil>]]"},
		{olaptest.Key{Domains: []string{"example.com"}, MinPeople: 3}, totals, "[[<nil>]]"}, // ada and cy

		{olaptest.Key{}, pairsOf, "[[5 3 3]]"},
		{olaptest.Key{Agents: []string{agent2}}, pairsOf, "[[2 2 1]]"},
		{ada, pairsOf, "[[2 2 1]]"}, {com, pairsOf, "[[2 2 1]]"},
		{olaptest.Key{People: []string{"bob@example.org"}}, pairsOf, "[[2 1 1]]"}, // a run that somebody else started
		{olaptest.Key{People: []string{"+15550100"}}, by(pairsOf, "user_domain"), "[[<nil> 1 0 1]]"},
		{atLeast(3), pairsOf, "[[5 3 3]]"}, {atLeast(4), pairsOf, "[[<nil> <nil> <nil>]]"},
		{atLeast(2), by(pairsOf, "agent_id"), "[[" + agent1 + " <nil> 3 1 2] [" + agent2 + " <nil> 2 2 1]]"},
		{atLeast(2), by(pairsOf, "user_domain"), "[]"},
		{atLeast(2), by(pairsOf, "activity_type"), "[[initiated 2 0 1] [interacted 2 3 1]]"},
	} {
		for i, engine := range engines {
			got, err := allAs(engine, accessOf(t, "acme", c.key), c.q)
			if shown := fmt.Sprint(got); err != nil || shown != c.want {
				t.Errorf("option %d, key %+v, query %+v: got %s, %v, want %s", i, c.key, c.q, shown, err, c.want)
			}
			if q := c.q; reflect.DeepEqual(c.key, olaptest.Key{}) && i == 0 {
				if oracle := fmt.Sprint(olaptest.Evaluate(handWorked(), "acme", q)); oracle != c.want {
					t.Errorf("the oracle says %s of %+v, want %s", oracle, q, c.want)
				}
			}
		}
	}
}

// A cursor continues under the restriction that it was made under, and under no other: neither a wider nor a narrower
// one, nor none. Another floor is another restriction; other days are not, because they choose no rows.
func TestCursorsAreOfOneRestriction(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	olaptest.Load(t, store.Conn(), handWorked())
	engine := cachingEngine(store.Conn())
	q := by(totals, "user_type")
	q.Limit = 1
	keys := []olaptest.Key{{}, {Agents: []string{agent1}}, {Agents: []string{agent1, agent2}}, {MinPeople: 2},
		{People: []string{"ada@example.com", "bob@example.org"}}, {Domains: []string{"example.com", "example.org"}},
		{Agents: []string{agent1}, Domains: []string{"example.com", "example.org"}}}
	for range 3 { // cached answers have cursors too
		for i, of := range keys {
			first, _, err := answered(engine, accessOf(t, "acme", of), q.Body())
			if err != nil {
				t.Fatal(err)
			}
			if of.MinPeople == 0 && first.Cursor == nil {
				t.Fatalf("key %+v has one page: %v", of, first.Rows)
			}
			for j, by := range keys {
				if first.Cursor == nil {
					continue
				}
				next := q
				next.Cursor = *first.Cursor
				_, _, err := answered(engine, accessOf(t, "acme", by), next.Body())
				if want := map[bool]string{true: "answered", false: "invalid_cursor cursor"}[i == j]; refusal(err) != want {
					t.Errorf("a cursor of %+v sent by %+v: %s, want %s", of, by, refusal(err), want)
				}
			}
		}
	}
}

// Keys of one organization that ask the same at the same time share an execution only if they see the same.
func TestOnlyEqualRestrictionsShareAnExecution(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	olaptest.Load(t, store.Conn(), handWorked())
	engine := cachingEngine(store.Conn())
	want := map[string]olaptest.Key{"[[6]]": {}, "[[4]]": {Agents: []string{agent1}}, "[[2]]": {Agents: []string{agent2}},
		"[[1]]": {Domains: []string{"example.org"}}, "[[<nil>]]": {MinPeople: 5}}
	var wait sync.WaitGroup
	for range 4 {
		for shown, key := range want {
			access := accessOf(t, "acme", key)
			wait.Go(func() {
				for range 5 {
					if got, _, err := answered(engine, access, totals.Body()); err != nil || fmt.Sprint(got.Rows) != shown {
						t.Errorf("key %+v: got %v, %v, want %s", key, got.Rows, err, shown)
					}
				}
			})
		}
	}
	wait.Wait()

	// An explanation is of what the key is answered.
	for rows, key := range map[int]olaptest.Key{2: {}, 1: {Agents: []string{agent1}}, 0: {MinPeople: 5}} {
		asked, err := request(accessOf(t, "acme", key), by(totals, "agent_id").Body())
		if err != nil {
			t.Fatal(err)
		}
		x, err := engine.Explain(t.Context(), asked)
		if err != nil || x.Rows != rows {
			t.Errorf("key %+v: explained %+v, %v, want %d rows", key, x, err, rows)
		}
	}
}
