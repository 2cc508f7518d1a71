package olap_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/testdata/queries"
)

// The cases of testdata/queries, whose answers are worked out by hand from the spec, under every strategy.
func TestQueryCases(t *testing.T) {
	eachScript(t, func(t *testing.T, script conform.Script) { runCases(t, olaptest.OpenStore(t).Conn(), script) })
}

// Every case is answered alike on a store that the first release made, that this binary has migrated, and that a newer
// one has migrated while this one goes on: from base rows, and from the rollup with what it lacks.
func TestQueryCasesBesideANewerBinary(t *testing.T) {
	store := clickhousetest.Open(t)
	olaptest.Migrate(t, store, olaptest.Release(t, 100))
	olaptest.Migrate(t, store, schema.Own)
	olaptest.Migrate(t, store, olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive}))
	conn, sample := store.Conn(), olaptest.NewSample(4)
	eachScript(t, func(t *testing.T, script conform.Script) {
		if !sample.Try() {
			return
		}
		base, rows := newAsker(conn, plan.Options{}), newAsker(conn, asLarge)
		of := filepath.Base(t.Name()) + "-"
		for _, step := range script.Rename(func(name string) string { return of + name }).Steps {
			if step.Records != nil {
				refreshed(t, rollup.New(conn, quiet, 0))
				olaptest.Load(t, conn, olaptest.RecordsOf(t, step))
				continue
			}
			if step.Soon { // and not refreshed
				continue
			}
			t.Run(step.Name, func(t *testing.T) {
				base.check(t, step)
				rows.check(t, step)
			})
		}
	})
}

// The inventory of rules and the cases name each other: no rule goes unproved, and no case proves an unknown rule. A
// rule that no question can prove names the test that does.
func TestEveryRuleHasACase(t *testing.T) {
	text, err := queries.Files.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := olaptest.ParseRules(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var steps []conform.Step
	eachScript(t, func(_ *testing.T, script conform.Script) { steps = append(steps, script.Steps...) })
	for _, wrong := range olaptest.Unproved(rules, steps) {
		t.Error(wrong)
	}
	for _, rule := range rules {
		for _, test := range rule.Tests {
			file, name, _ := strings.Cut(test, " ")
			code, err := os.ReadFile(filepath.Join("..", file))
			if err != nil || !strings.Contains(string(code), "func "+name+"(") {
				t.Errorf("%s: there is no test %s", rule.Name, test)
			}
		}
	}
}

func eachScript(t *testing.T, run func(*testing.T, conform.Script)) {
	scripts, err := conform.Scripts(queries.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) { run(t, script.Script) })
	}
}

// runCases takes the store through every state of the rollup after each load: before a refresh, while one is in
// progress, and after it. In each state it runs the queries that follow the load.
func runCases(t *testing.T, conn driver.Conn, script conform.Script) {
	refreshed(t, rollup.New(conn, quiet, 0))
	small, large, forgetful := newAsker(conn, plan.Options{}), newAsker(conn, asLarge), newAsker(conn, inlineDelta)
	for steps := script.Steps; len(steps) > 0; {
		var loaded olaptest.Records
		for ; len(steps) > 0 && steps[0].Records != nil; steps = steps[1:] {
			records := olaptest.RecordsOf(t, steps[0])
			olaptest.Load(t, conn, records)
			loaded = olaptest.Join([]olaptest.Records{loaded, records})
		}
		end := slices.IndexFunc(steps, func(s conform.Step) bool { return s.Records != nil })
		if end < 0 {
			end = len(steps)
		}
		block := steps[:end]
		steps = steps[end:]

		under := func(name string, asker *asker, want func(conform.Step) olap.Strategy) {
			t.Run(name, func(t *testing.T) {
				for i, step := range block {
					if !step.Soon && (inEveryState(block) || inTurn(name, i, step)) {
						t.Run(step.Name, func(t *testing.T) { asker.checkUnder(t, step, want(step)) })
					}
				}
			})
		}
		ofRollup := func(s olap.Strategy) func(conform.Step) olap.Strategy {
			return func(conform.Step) olap.Strategy { return s }
		}
		under("base rows", small, ofRollup(olap.Strategy{Reads: "base"}))
		under("inline delta", forgetful, ofRollup(olap.Strategy{Reads: "rollup", Delta: "inline"}))
		under("cached delta", large, func(s conform.Step) olap.Strategy {
			switch {
			case has(loaded, s) && usesInitiatorKeys(s):
				return olap.Strategy{Reads: "rollup", Delta: "inline"}
			case has(loaded, s):
				return olap.Strategy{Reads: "rollup", Delta: "cached"}
			}
			return olap.Strategy{Reads: "rollup", Delta: "none"}
		})
		commit := refreshButCommit(t, conn)
		under("refresh in progress", large, ofRollup(olap.Strategy{Reads: "rollup", Delta: "inline", Refreshing: true}))
		commit()
		under("no delta", large, ofRollup(olap.Strategy{Reads: "rollup", Delta: "none"}))
		// What a source changed against the rules is known from the refresh on.
		for _, step := range block {
			if step.Soon {
				for _, asker := range []*asker{newAsker(conn, plan.Options{}), newAsker(conn, asLarge)} {
					t.Run(step.Name, func(t *testing.T) { asker.check(t, step) })
				}
			}
		}
	}
}

// inEveryState reports whether all questions after one load are asked in every state. Many take turns, and with -short
// few as well.
func inEveryState(block []conform.Step) bool { return len(block) <= 20 && !testing.Short() }

// inTurn reports whether a question is asked in a state, where questions take turns: each from base rows and from a
// refreshed rollup, and with one of the three states between them. Those of which one continues another are asked in
// all states, and what is refused in one.
func inTurn(state string, i int, step conform.Step) bool {
	turn := slices.Index([]string{"inline delta", "cached delta", "refresh in progress"}, state)
	switch {
	case step.UsesCursor() || step.More || state == "base rows":
		return true
	case step.FailCode != "":
		return false
	}
	return turn < 0 || turn == i%3
}

// has reports whether records has one of the organization and the source that a step queries.
func has(records olaptest.Records, step conform.Step) bool {
	if strings.Contains(step.Body, `"agent_runs"`) {
		return slices.ContainsFunc(records.Runs, func(r olaptest.Run) bool { return r.Organization == step.Organization })
	}
	return slices.ContainsFunc(records.Attributions, func(a olaptest.Attribution) bool {
		return a.Organization == step.Organization
	})
}

// usesInitiatorKeys reports whether an answer depends on who started runs, which a cached delta does not have.
func usesInitiatorKeys(step conform.Step) bool {
	return strings.Contains(step.Body, `"user_identifier"`) || strings.Contains(step.Body, `"unique_initiator_count"`)
}

// fitsRollup reports whether the rollup can answer a query: of runs everything, of attribution records the additive
// metric by dimensions with few records a value.
func fitsRollup(t *testing.T, text string) bool {
	t.Helper()
	var q olaptest.Query
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatal(err)
	}
	if q.Model == "agent_runs" {
		return true
	}
	members := q.Dimensions
	for _, f := range q.Filters {
		members = append(members, f.Member)
	}
	return reflect.DeepEqual(q.Metrics, []string{"interaction_count"}) &&
		!slices.ContainsFunc(members, func(m string) bool {
			return !slices.Contains([]string{"agent_id", "activity_type", "day"}, m)
		})
}

// A committingConn delays the commit of a refresh.
type committingConn struct {
	driver.Conn
	reached, commit chan struct{}
}

func (c *committingConn) Exec(ctx context.Context, sql string, args ...any) error {
	if slices.Contains(args, any(clickhouse.Named("kind", "commit"))) {
		close(c.reached)
		<-c.commit
	}
	return c.Conn.Exec(ctx, sql, args...)
}

// refreshButCommit refreshes the rollup, all rows of it, and returns what commits that and ends the refresh.
func refreshButCommit(t *testing.T, conn driver.Conn) (commit func()) {
	t.Helper()
	delayed := &committingConn{Conn: conn, reached: make(chan struct{}), commit: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- rollup.New(delayed, quiet, 0).Refresh(context.Background()) }()
	select {
	case <-delayed.reached:
	case err := <-ended:
		t.Fatalf("the refresh ended before its commit: %v", err)
	}
	return func() {
		t.Helper()
		close(delayed.commit)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
