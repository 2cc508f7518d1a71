package olap_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
)

// The runs outside the join window of a range are cached. What is stored afterwards counts: records of runs outside it,
// runs inside and outside it whose records came first, and new versions of runs outside it.
func TestRunsOutsideAreCached(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.TakeAsLarge()

	run := func(n int, outside bool, status string, version int) olaptest.Run {
		r := runOn(n, 2, status)
		if outside {
			r.CreatedAt = r.CreatedAt.AddDate(0, -3, 0)
		}
		r.UpdatedAt = r.UpdatedAt.Add(time.Duration(version) * time.Hour)
		return r
	}
	// A record of a run, stamped as if it had been stored some time ago.
	record := func(n int, ago time.Duration) {
		t.Helper()
		if err := store.Conn().Exec(ctx, "INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, "+
			"user_identifier, activity_type, run_initiation_type, source, occurred_at, first_stored_at) SELECT 'acme', $1, "+
			"$1, $1, 'ada@example.com', 'interacted', 'human', 'web', toDateTime64('2026-01-02 13:00:00', 3, 'UTC'), now64(3) "+
			"- toIntervalMillisecond($2)",
			olaptest.ShortID(n), ago.Milliseconds()); err != nil {
			t.Fatal(err)
		}
	}
	const clockMargin = 2 * time.Second
	metrics := []string{"attributed_run_count", "completed_attributed_run_count", "failed_attributed_run_count",
		"active_attributed_run_count"}
	expect := func(when string, want ...float64) {
		t.Helper()
		for _, dimensions := range [][]string{nil, {"day"}} {
			q := olaptest.Query{Model: "agent_user_activity", Metrics: metrics, Dimensions: dimensions, Range: january,
				Limit: 10}
			row := ask(t, engine, "acme", q).Rows[0]
			if got := fmt.Sprint(row[len(dimensions):]); got != fmt.Sprint(want) {
				t.Errorf("%s, by %v: %v of %v, want %v", when, dimensions, got, metrics, want)
			}
		}
	}

	olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{
		run(1, false, "COMPLETED", 0), run(2, true, "RUNNING", 0), run(3, true, "COMPLETED", 0), run(6, true, "COMPLETED", 0),
	}})
	for _, n := range []int{1, 2, 4, 5} { // 4 and 5 are not copied yet
		record(n, time.Minute)
	}
	expect("at first", 4, 1, 0, 1)
	if n, _ := engine.RunsOutside(ofJanuary(t)); n != 3 {
		t.Fatalf("%d runs are cached as outside the join window, want 2, 4 and 5", n)
	}

	olaptest.Load(t, store.Conn(),
		olaptest.Records{Runs: []olaptest.Run{run(2, true, "FAILED", 1), run(4, true, "FAILED", 0),
			run(5, false, "RUNNING", 0)}})
	record(3, 0)
	record(6, clockMargin/2) // for which the clock was set back
	expect("later", 6, 3, 2, 1)

	// Had the clock been set back since, nothing would seem to have been stored since.
	engine.SetRunsOutside(ofJanuary(t), time.Now().Add(time.Hour))
	expect("with the clock set back", 6, 3, 2, 1)
}

// The runs of all records that were stored since are looked up. If these become too many, the runs outside the join
// window are read again.
func TestManyNewRecordsReadRunsOutsideAgain(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.TakeAsLarge()
	q := olaptest.Query{Model: "agent_user_activity",
		Metrics: []string{"attributed_run_count", "completed_attributed_run_count"}, Range: january, Limit: 10}
	stored := 0
	for _, c := range []struct{ records, cached int }{{3, 3}, {5_000, 3}, {1, 5_004}, {2, 5_004}} {
		if err := store.Conn().Exec(ctx, "INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, "+
			"user_identifier, activity_type, run_initiation_type, source, occurred_at) SELECT 'acme', generateUUIDv4(), "+
			"reinterpretAsUUID(sipHash128(number)), generateUUIDv4(), 'ada@example.com', 'interacted', 'human', 'web', "+
			"toDateTime64('2026-01-02 13:00:00', 3, 'UTC') FROM numbers($1, $2)",
			stored, c.records); err != nil {
			t.Fatal(err)
		}
		stored += c.records
		if got := ask(t, engine, "acme", q).Rows[0][0].(float64); got != float64(stored) {
			t.Errorf("%v runs, want %d", got, stored)
		}
		if got, _ := engine.RunsOutside(ofJanuary(t)); got != c.cached {
			t.Errorf("of %d records, %d runs are cached as outside the join window, want %d", stored, got, c.cached)
		}
	}
}

// Runs are read from their merged part and their newer versions from the others, by the names the parts had a while
// ago. A version counts wherever it is: in the merged part, in another one, in one that was merged since, and in one
// that was stored since.
func TestVersionsCountInAnyPart(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.TakeAsLarge()
	if err := store.Conn().Exec(ctx, "SYSTEM STOP MERGES runs"); err != nil {
		t.Fatal(err)
	}
	merge := func() {
		t.Helper()
		for _, sql := range []string{"SYSTEM START MERGES runs", "OPTIMIZE TABLE runs FINAL", "SYSTEM STOP MERGES runs"} {
			if err := store.Conn().Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	var records olaptest.Records
	load := func(day int, status string, version int, runs ...int) {
		t.Helper()
		var batch olaptest.Records
		for _, n := range runs {
			run := runOn(n, day, status)
			run.UpdatedAt = run.UpdatedAt.Add(time.Duration(version) * time.Hour)
			batch.Runs = append(batch.Runs, run)
		}
		olaptest.Load(t, store.Conn(), batch)
		records.Runs = append(records.Runs, batch.Runs...)
	}
	q := olaptest.Query{Model: "agent_user_activity", Dimensions: []string{"agent_id"}, Range: january, Limit: 10,
		Metrics: []string{"completed_attributed_run_count", "failed_attributed_run_count", "active_attributed_run_count"}}
	totals := q // whose rows are counted too, so that versions must not be joined
	totals.Dimensions, totals.Metrics = nil, append([]string{"interaction_count"}, q.Metrics...)
	expect := func(when string, merged int) {
		t.Helper()
		for _, q := range []olaptest.Query{q, totals} {
			want, got := olaptest.Evaluate(records, "acme", q), all(t, engine, "acme", q)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, by %v: got %v, want %v", when, q.Dimensions, got, want)
			}
		}
		if _, got := engine.RunsOutside(ofJanuary(t)); got != merged {
			t.Errorf("%s: %d parts are read as merged, want %d", when, got, merged)
		}
	}

	load(2, "RUNNING", 0, 1, 2, 3, 4, 5, 6)
	load(40, "RUNNING", 0, 7) // outside the join window, in the next month, whose part is read all the same
	merge()
	load(2, "COMPLETED", 1, 2, 3)
	load(2, "RUNNING", 0, 8) // in no merged part
	load(2, "FAILED", 2, 3)
	for n := 1; n <= 9; n++ {
		run := runOn(n, 2, "")
		records.Attributions = append(records.Attributions, olaptest.Attribution{Organization: "acme", ID: run.ID,
			RunID: run.ID, AgentID: olaptest.ShortID(n % 2),
			Identifier: "ada@example.com", Activity: "interacted", InitiationType: "human", Source: "web",
			OccurredAt: run.CreatedAt})
	}
	olaptest.Load(t, store.Conn(), olaptest.Records{Attributions: records.Attributions})
	expect("in two parts", 2)
	load(2, "FAILED", 3, 4, 8)
	expect("stored since", 2)
	merge()
	expect("merged since", 2)
	load(2, "COMPLETED", 4, 5, 3)
	load(2, "CANCELLED", 1, 9)
	load(2, "RUNNING", 0, 2, 4, 8) // superseded ones once more
	expect("merged and stored since", 2)
}

// ofJanuary is a request whose range is January.
func ofJanuary(t *testing.T) olap.Request {
	t.Helper()
	q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return olap.Request{OrganizationID: "acme", Query: q}
}
