package olap_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
)

// cachingEngine caches answers.
func cachingEngine(conn driver.Conn) *olap.Engine {
	e := olap.NewEngine(conn, []byte("secret"))
	e.CacheAnswers(1 << 20)
	return e
}

// Whatever was stored between the times that a query is asked, every answer is the one of then.
func TestCachedAnswersEqualTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	small, large := cachingEngine(conn), cachingEngine(conn)
	large.Use(asLarge)
	refresher := rollup.New(conn, quiet, 0)
	checkProperty(t, 12, func(t *rapid.T) {
		organization, records := drawn(t)
		queries := []olaptest.Query{olaptest.DrawQuery(t), olaptest.DrawQuery(t), olaptest.DrawSum(t)}
		var stored olaptest.Records
		for _, batch := range records.Batches(t) {
			olaptest.Load(t, conn, batch)
			stored = olaptest.Join([]olaptest.Records{stored, batch})
			if rapid.Bool().Draw(t, "refresh") {
				refreshed(t, refresher)
			}
			if !olaptest.UniqueLiveSlugs(stored, organization) {
				continue
			}
			engine := rapid.SampledFrom([]*olap.Engine{small, large}).Draw(t, "engine")
			for range 3 {
				for _, q := range queries {
					compare(t, engine, stored, organization, q)
				}
			}
		}
	})
}

// An answer that nothing changed is given without a statement, and each change that could change it is in the next one.
func TestChangesAreInCachedAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	engine := cachingEngine(conn)
	refresher := rollup.New(conn, quiet, 0)
	ada := "ada@example.com"
	run := runOn(1, 5, "RUNNING")
	run.Identifier = &ada
	attribution := run.By(ada)
	agent := olaptest.Agent{Organization: "acme", ID: run.AgentID, Name: "Support", UpdatedAt: run.UpdatedAt}
	olaptest.Load(t, conn, olaptest.Records{
		Agents: []olaptest.Agent{agent}, Runs: []olaptest.Run{run}, Attributions: []olaptest.Attribution{attribution},
	})
	refreshed(t, refresher)
	people := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"attributed_run_count",
		"completed_attributed_run_count", "interaction_count"}, Dimensions: []string{"agent_id", "user_identifier"},
		Range: olaptest.Range{Start: "2026-01-01", End: "2026-12-31", Timezone: "UTC"}}
	answer := func(want ...any) (cached bool) {
		t.Helper()
		got, by, err := answered(engine, acme, people.Body())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Rows, rowsOf(want)) {
			t.Errorf("%v, want %v", got.Rows, want)
		}
		return by.Reads == "cached_answer"
	}
	id := run.AgentID.String()
	for _, change := range []struct {
		name string
		do   func()
		want []any // the only row
	}{
		{"nothing", func() {}, []any{id, "Support", ada, nil, 1.0, 0.0, 1.0}},
		{"a rename", func() {
			agent.Name, agent.UpdatedAt = "Sales", agent.UpdatedAt.Add(time.Hour)
			olaptest.Load(t, conn, olaptest.Records{Agents: []olaptest.Agent{agent}})
		}, []any{id, "Sales", ada, nil, 1.0, 0.0, 1.0}},
		{"a status", func() {
			run.Status, run.UpdatedAt = "COMPLETED", run.UpdatedAt.Add(time.Hour)
			olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run}})
		}, []any{id, "Sales", ada, nil, 1.0, 1.0, 1.0}},
		{"a record", func() {
			second := attribution
			second.ID, second.RunID = olaptest.ID(2), olaptest.ID(2)
			olaptest.Load(t, conn, olaptest.Records{Attributions: []olaptest.Attribution{second}})
		}, []any{id, "Sales", ada, nil, 2.0, 1.0, 2.0}},
		{"a record under another clock", func() {
			attribution.OccurredAt = attribution.OccurredAt.Add(61 * 24 * time.Hour)
			olaptest.Load(t, conn, olaptest.Records{Attributions: []olaptest.Attribution{attribution}})
		}, []any{id, "Sales", ada, nil, 2.0, 1.0, 3.0}},
		{"what the refresher found of it", func() { refreshed(t, refresher) }, []any{id, "Sales", ada, nil, 2.0, 1.0, 2.0}},
		{"a purge", func() {
			if err := purge.Person("acme", ada).Run(ctx, conn, func(purge.Step) {}); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		change.do()
		if answer(change.want...) {
			t.Errorf("after %s: cached", change.name)
		}
		answer(change.want...)
		if !answer(change.want...) {
			t.Errorf("after %s: not cached", change.name)
		}
	}
	execute(t, conn, "DROP TABLE count_inserted_agents")
	following, stop := context.WithCancel(ctx)
	defer stop()
	go engine.Follow(following)
	for answer() {
	}
}

// Cursors of secrets that were replaced are refused, also where the answer is cached.
func TestCachedAnswersFollowCursorSecrets(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engine := cachingEngine(conn)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 1, "FAILED"), runOn(2, 2, "FAILED")}})
	q := byDay(1)
	var old olaptest.Query
	for range 3 {
		old = q
		old.Cursor = *ask(t, engine, "acme", q).Cursor
		ask(t, engine, "acme", old)
	}
	engine.UseCursorSecrets([]byte("another secret"))
	var refused *query.Error
	if _, _, err := answered(engine, acme, old.Body()); !errors.As(err, &refused) || refused.Code != query.InvalidCursor {
		t.Errorf("an old cursor: %v", err)
	}
	if rows := all(t, engine, "acme", q); len(rows) != 2 {
		t.Errorf("%v, want two days", rows)
	}
}

// While rows arrive from several processes, every answer has those that were acknowledged before it was asked for, and
// its asOf is not before them.
func TestCachedAnswersUnderWriters(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	engine := cachingEngine(conn)
	var acknowledged, cached atomic.Int64
	var writing, asking sync.WaitGroup
	for w := range 2 {
		writing.Go(func() {
			for n := range 40 {
				olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(w*1000+n, 1+n%28, "RUNNING")}})
				acknowledged.Add(1)
				time.Sleep(time.Duration(n%4) * 10 * time.Millisecond) // so that some answers can be cached
				// Also on a machine that is slow, at the latest when the other one has ended.
				for end := time.Now().Add(time.Minute); w == 0 && n == 20 && cached.Load() == 0 && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for range 4 {
		asking.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				before, sent := acknowledged.Load(), time.Now().Truncate(time.Millisecond)
				got, by, err := answered(engine, acme, totals.Body())
				if err != nil {
					t.Error(err)
					return
				}
				asOf, err := time.Parse(time.RFC3339, got.AsOf)
				if err != nil || got.Rows[0][0].(float64) < float64(before) || asOf.Before(sent) {
					t.Errorf("%v as of %s, sent at %s when %d were acknowledged: %v", got.Rows, got.AsOf, sent, before, err)
				}
				if by.Reads == "cached_answer" {
					cached.Add(1)
				}
			}
		})
	}
	asking.Wait()
	if cached.Load() == 0 {
		t.Error("no answer was cached")
	}
}

// rowsOf are the rows of an answer of at most one row.
func rowsOf(row []any) [][]any {
	if row == nil {
		return [][]any{}
	}
	return [][]any{row}
}
