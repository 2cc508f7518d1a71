package olap_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// The cases of testdata/queries, whose answers are worked out by hand from the spec, under every strategy.
func TestQueryCases(t *testing.T) {
	t.Parallel()
	eachCaseFile(t, func(t *testing.T, script olaptest.Script) { runCases(t, olaptest.OpenStore(t).Conn(), script) })
}

// Every case is answered alike on a store that the first release made, that this binary has migrated, and that a newer
// one has migrated while this one goes on: from base rows, and from the rollup with what it lacks.
func TestQueryCasesBesideANewerBinary(t *testing.T) {
	t.Parallel()
	eachCaseFile(t, func(t *testing.T, script olaptest.Script) {
		store := clickhousetest.Open(t)
		olaptest.Migrate(t, store, olaptest.Release100(t))
		olaptest.Migrate(t, store, schema.Own())
		olaptest.Migrate(t, store, olaptest.Newer(t, map[string]string{"9000_next": olaptest.Additive}))
		conn := store.Conn()
		small, large := olap.NewEngine(conn, []byte("secret")), olap.NewEngine(conn, []byte("secret"))
		large.Use(asLarge)
		for _, step := range script.Steps {
			if step.Records != nil {
				refreshed(t, rollup.New(conn, quiet, 0))
				olaptest.Load(t, conn, *step.Records)
				continue
			}
			t.Run(step.Name, func(t *testing.T) {
				checkAnswer(t, small, step)
				checkAnswer(t, large, step)
			})
		}
	})
}

// eachCaseFile calls run for the files of cases, side by side.
func eachCaseFile(t *testing.T, run func(*testing.T, olaptest.Script)) {
	files, err := filepath.Glob("../testdata/queries/*.test")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, err := olaptest.ParseScript(string(text))
			if err != nil {
				t.Fatal(err)
			}
			run(t, script)
		})
	}
}

// runCases takes the store through every state of the rollup after each load: before a refresh, while one is in
// progress, and after it. In each state it runs the queries that follow the load.
func runCases(t *testing.T, conn driver.Conn, script olaptest.Script) {
	refreshed(t, rollup.New(conn, quiet, 0))
	newEngine := func(options plan.Options) *olap.Engine {
		e := olap.NewEngine(conn, []byte("secret"))
		e.Use(options)
		e.TrustClock()
		return e
	}
	small, large, forgetful := newEngine(plan.Options{}), newEngine(asLarge), newEngine(inlineDelta)
	for steps := script.Steps; len(steps) > 0; {
		var loaded olaptest.Records
		for ; len(steps) > 0 && steps[0].Records != nil; steps = steps[1:] {
			olaptest.Load(t, conn, *steps[0].Records)
			loaded = olaptest.Join([]olaptest.Records{loaded, *steps[0].Records})
		}
		end := slices.IndexFunc(steps, func(s olaptest.Step) bool { return s.Records != nil })
		if end < 0 {
			end = len(steps)
		}
		block := steps[:end]
		steps = steps[end:]

		under := func(name string, engine *olap.Engine, want func(olaptest.Step) olap.Strategy) {
			t.Run(name, func(t *testing.T) {
				for _, step := range block {
					t.Run(step.Name, func(t *testing.T) { check(t, engine, step, want(step)) })
				}
			})
		}
		ofRollup := func(s olap.Strategy) func(olaptest.Step) olap.Strategy {
			return func(olaptest.Step) olap.Strategy { return s }
		}
		under("base rows", small, ofRollup(olap.Strategy{Reads: "base"}))
		under("inline delta", forgetful, ofRollup(olap.Strategy{Reads: "rollup", Delta: "inline"}))
		under("cached delta", large, func(s olaptest.Step) olap.Strategy {
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
	}
}

// has reports whether records has one of the organization and the source that a step queries.
func has(records olaptest.Records, step olaptest.Step) bool {
	if strings.Contains(step.Query, `"agent_runs"`) {
		return slices.ContainsFunc(records.Runs, func(r olaptest.Run) bool { return r.Organization == step.Organization })
	}
	return slices.ContainsFunc(records.Attributions, func(a olaptest.Attribution) bool {
		return a.Organization == step.Organization
	})
}

// usesInitiatorKeys reports whether an answer depends on who started runs, which a cached delta does not have.
func usesInitiatorKeys(step olaptest.Step) bool {
	return strings.Contains(step.Query, `"user_identifier"`) || strings.Contains(step.Query, `"unique_initiator_count"`)
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

// check repeats a case's query until it is answered under a strategy, if the query fits the rollup: until the inserts
// are old enough to be counted, no delta is cached. Every answer must be the case's.
func check(t *testing.T, engine *olap.Engine, step olaptest.Step, want olap.Strategy) {
	for tries := 1; ; tries++ {
		strategy, answered := checkAnswer(t, engine, step)
		if !answered || t.Failed() {
			return
		}
		strategy.Reads, _, _ = strings.Cut(strategy.Reads, "_")
		if !fitsRollup(t, step.Query) {
			want = olap.Strategy{Reads: "base"}
		}
		got := olap.Strategy{Reads: strategy.Reads, Delta: strategy.Delta, Refreshing: strategy.Refreshing}
		if reflect.DeepEqual(got, want) {
			return
		}
		if tries == 100 {
			t.Fatalf("line %d: answered by %+v, want %+v", step.Line, strategy, want)
		}
	}
}

// checkAnswer runs a case's query once. It returns how it was answered, unless it had to be refused.
func checkAnswer(t *testing.T, engine *olap.Engine, step olaptest.Step) (_ olap.Strategy, answered bool) {
	t.Helper()
	result, err := answer(engine, step)
	if step.FailCode != "" {
		var refused *query.Error
		if !errors.As(err, &refused) || string(refused.Code) != step.FailCode || refused.Param != step.FailParam {
			t.Errorf("line %d: got %v, want %s at %s", step.Line, err, step.FailCode, step.FailParam)
		}
		return olap.Strategy{}, false
	}
	if err != nil {
		t.Fatalf("line %d: %v", step.Line, err)
	}
	var got response
	if err := json.Unmarshal(result.AppendJSON(nil), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Rows, step.Rows) {
		t.Errorf("line %d:\n got %v\nwant %v", step.Line, got.Rows, step.Rows)
	}
	for _, row := range got.Rows {
		if len(row) != len(got.Columns) {
			t.Errorf("line %d: %d values for %d columns", step.Line, len(row), len(got.Columns))
		}
	}
	if step.Warnings != nil {
		members := []string{}
		for _, w := range got.Warnings {
			if w.Code != "non_additive_metric" || w.Message == "" {
				t.Errorf("line %d: warning %+v", step.Line, w)
			}
			members = append(members, w.Member)
		}
		if !reflect.DeepEqual(members, step.Warnings) {
			t.Errorf("line %d: warnings of %v, want %v", step.Line, members, step.Warnings)
		}
	}
	return result.Strategy(), true
}

func answer(engine *olap.Engine, step olaptest.Step) (*olap.Result, error) {
	parsed, err := query.Parse([]byte(step.Query))
	if err != nil {
		return nil, err
	}
	return engine.Run(context.Background(), olap.Request{
		OrganizationID: schema.OrganizationID(step.Organization), QueryID: uuid.New(), Query: parsed,
	})
}
