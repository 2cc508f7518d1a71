package olap_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// A source may change what should never change: created_at of runs, the content and occurred_at of attribution
// records. Whatever it sends, in whatever order and however often, every record counts once when conflicts were
// resolved, at the latest one refresh later, in every strategy alike (contract 4.20).
func TestBrokenSourcesCountOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engines := trusting(conn)
	refresher := rollup.New(conn, quiet, 0)
	organizations := 0
	checkProperty(t, 7, func(t *rapid.T) {
		organizations++
		organization := fmt.Sprintf("org-%d", organizations)
		batches := olaptest.DrawBroken(t, organization)
		records := olaptest.Join(batches)
		if !olaptest.UniqueLiveSlugs(records, organization) {
			t.Skip("two agents that are not deleted have one slug")
		}
		maintain := func() {
			switch n := rapid.IntRange(0, 9).Draw(t, "maintenance"); {
			case n < 4:
				refreshed(t, refresher)
			case n == 4:
				merge(t, conn)
			case n == 5:
				if err := rollup.Rebuild(ctx, conn); err != nil {
					t.Fatal(err)
				}
			case n == 6: // what is cached now must not be used later
				ask(t, engines["cached"], organization, olaptest.DrawQuery(t))
			}
		}
		compareAny := func(records olaptest.Records) {
			name := rapid.SampledFrom([]string{"rows", "cached", "inline"}).Draw(t, "engine")
			q := olaptest.DrawQuery(t)
			if rapid.Bool().Draw(t, "sum") {
				q = olaptest.DrawSum(t)
			}
			compare(t, engines[name], records, organization, q)
		}
		way := rapid.SampledFrom([]string{"loaded", "ingested", "pushed"}).Draw(t, "way")
		for i, batch := range batches {
			since := storeClock(t, conn)
			if way == "pushed" {
				pushBatch(t, conn, batch)
			} else {
				olaptest.Load(t, conn, batch)
			}
			if way == "ingested" {
				if _, err := refresher.Resolve(ctx, since); err != nil {
					t.Fatal(err)
				}
			}
			if way != "loaded" {
				compareAny(olaptest.Join(batches[:i+1]))
			}
			maintain()
		}
		if way == "loaded" {
			refreshed(t, refresher)
			maintain()
		}
		for range 4 {
			compareAny(records)
		}
	})
	refreshed(t, refresher)
	sound(t, conn)
}

// Of copies that were stored in one millisecond one counts, the same one for every question and strategy, before
// parts are merged and after it.
func TestCopiesOfOneMillisecondHaveOneWinner(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	const copies = `INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, ` +
		`activity_type, run_initiation_type, source, occurred_at, first_stored_at)
		SELECT 'acme', reinterpretAsUUID(sipHash128(number)), reinterpretAsUUID(sipHash128(number)), ` +
		`reinterpretAsUUID(sipHash128('agent %[1]d')), 'person%[1]d@example.com',
			['initiated', 'associated', 'interacted'][(number + %[1]d) %% 3 + 1], 'human', 'source %[1]d', ` +
		`toDateTime64('2026-01-05 10:00:00', 3, 'UTC') + number %% 5 * %[1]d * 86400,
			toDateTime64('2026-02-01 00:00:00', 3, 'UTC') FROM numbers(200)`
	for _, n := range []int{2, 0, 1} {
		execute(t, conn, fmt.Sprintf(copies, n))
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	var answers []string
	for merged := range 2 {
		if merged == 1 {
			execute(t, conn, "OPTIMIZE TABLE attributions FINAL")
		}
		for _, e := range trusting(conn) {
			answer := ""
			// The same counts by every dimension, and summed up: of pairs, by which copies are read as they are, and of rows.
			for _, metric := range []string{"initiated_run_count", "interacted_run_count", "interaction_count",
				"attributed_run_count"} {
				for _, dimension := range []string{"agent_id", "activity_type", "day"} {
					q := olaptest.Query{Model: "agent_user_activity", Metrics: []string{metric}, Dimensions: []string{dimension},
						Range: january, Limit: 500}
					rows := ask(t, e, "acme", q).Rows
					sum := summed(rows)
					q.Dimensions = nil
					if total := ask(t, e, "acme", q).Rows[0][0].(float64); total != sum || metric == "attributed_run_count" &&
						sum != 200 {
						t.Errorf("%s: %v, and %v by %s", metric, total, sum, dimension)
					}
					answer += fmt.Sprintln(metric, rows)
				}
			}
			answers = append(answers, answer)
		}
	}
	for _, answer := range answers[1:] {
		if answer != answers[0] {
			t.Errorf("two winners:\n%s\n%s", answers[0], answer)
		}
	}
}

// A copy that does not count, because the record counts under another clock, does not count when it is sent again
// either, as workers do: it is in the delta then.
func TestRepeatsUnderAnotherClockCountOnce(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	refresher := rollup.New(conn, quiet, 0)
	engines := trusting(conn)
	first := runOn(1, 5, "").By("ada@example.com")
	second := first
	second.OccurredAt = first.OccurredAt.Add(time.Hour)
	older, newer := runOn(1, 1, "RUNNING"), runOn(1, 2, "COMPLETED") // of which the clock of the newer one counts
	refreshes := func(n int, run olaptest.Run, attribution olaptest.Attribution) {
		olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run},
			Attributions: []olaptest.Attribution{attribution}})
		pass(t, conn, 2*time.Millisecond)
		for range n {
			refreshed(t, refresher)
		}
	}
	refreshes(1, older, first)
	refreshes(1, newer, second)
	for n := range 3 {
		for name, e := range engines {
			for _, q := range []olaptest.Query{
				{Model: "agent_runs", Metrics: []string{"run_count", "completed_run_count"}, Range: january, Limit: 100},
				{Model: "agent_user_activity", Metrics: []string{"interaction_count"}, Dimensions: []string{"activity_type"},
					Range: january, Limit: 100},
			} {
				want := [][]any{{1.0, 1.0}}
				if q.Model == "agent_user_activity" {
					want = [][]any{{"interacted", 1.0}}
				}
				if got := ask(t, e, "acme", q).Rows; !reflect.DeepEqual(got, want) {
					t.Errorf("%d repeats, %s, %s: %v, want %v", n, name, q.Model, got, want)
				}
			}
		}
		refreshes(n, older, second) // what was superseded is refreshed before the second repeat
		refreshes(0, older, second)
	}
}

// A record that was stored under two clocks counts once, whatever was purged of it and stored again: under the clock
// that is left, or under the one that comes back.
func TestPurgedRecordsCountUnderTheClockThatIsLeft(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	refresher, checker := rollup.New(conn, quiet, 0), rollup.NewChecker(conn, olaptest.Anyone, quiet)
	at := func(n, minutes int, person string) olaptest.Records {
		record := runOn(n, 5, "").By(person)
		record.OccurredAt = record.OccurredAt.Add(time.Duration(minutes) * time.Minute)
		return olaptest.Records{Attributions: []olaptest.Attribution{record}}
	}
	store := func(records ...olaptest.Records) {
		t.Helper()
		for _, r := range records {
			olaptest.Load(t, conn, r)
			pass(t, conn, 2*time.Millisecond)
		}
		refreshed(t, refresher)
	}
	ada, bob := "ada@example.com", "bob@example.com"
	store(at(1, 0, ada), at(2, 0, ada), at(3, 0, ada), at(4, 0, bob))
	store(at(1, 1, ada), at(2, 1, bob), at(3, 1, bob), at(4, 1, ada)) // of each the clock of minute 0 counts
	store(at(3, 2, bob))
	counts := func(when string, want float64) {
		t.Helper()
		for name, e := range trusting(conn) {
			got := ask(t, e, "acme", olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"},
				Dimensions: []string{"activity_type"}, Range: january, Limit: 10}).Rows
			if !reflect.DeepEqual(got, [][]any{{"interacted", want}}) {
				t.Errorf("%s, %s: %v, want %v", when, name, got, want)
			}
		}
		sound(t, conn)
	}
	repair := func() {
		t.Helper()
		for state, err := snapshot.ReadLog(ctx, conn); len(state.Damaged) > 0; state, err = snapshot.ReadLog(ctx, conn) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := checker.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	counts("at first", 4)
	if err := purge.Person("acme", ada).Run(ctx, conn, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}
	repair()
	counts("without ada", 3) // records 2 and 3 as bob's copies, and 4
	store(at(1, 1, ada))
	counts("one of hers under its other clock", 4)
	store(at(1, 0, ada), at(4, 1, ada))
	counts("and under the first one", 4)

	// As an earlier version left it: of a record only the clock is there that does not count.
	store(at(5, 0, ada))
	store(at(5, 1, ada))
	execute(t, conn, "ALTER TABLE attributions DELETE WHERE occurred_at = '2026-01-05 12:00:00' AND"+
		" attribution_id = '"+olaptest.ShortID(5).String()+"' SETTINGS mutations_sync = 2")
	want := rollup.Difference{Table: "conflicting_records", Organization: "acme", Records: 1}
	if differences, err := rollup.Check(ctx, conn); err != nil || !slices.Contains(differences, want) {
		t.Errorf("a record that does not count: %+v, %v", differences, err)
	}
	if err := rollup.Rebuild(ctx, conn); err != nil {
		t.Fatal(err)
	}
	refreshed(t, refresher)
	counts("after a rebuild", 5)
}
