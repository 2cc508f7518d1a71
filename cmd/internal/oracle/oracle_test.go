package oracle_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/cmd/internal/oracle"
	"github.com/runlens/runlens/olap/olaptest"
)

// Of any records, in any order and with repeats, the oracle answers what the naive evaluator answers.
func TestAnswersEqualTheNaiveEvaluator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := olaptest.DrawRecords(t, "acme")
		if !olaptest.UniqueLiveSlugs(records, "acme") {
			t.Skip("two agents that are not deleted have one slug")
		}
		o := oracle.New()
		for _, batch := range records.Batches(t) {
			put(o, batch)
		}
		for range 5 {
			q := olaptest.DrawQuery(t)
			if rapid.Bool().Draw(t, "sum") {
				q = olaptest.DrawSum(t)
			}
			compare(t, o, records, q, olaptest.Key{})
			compare(t, o, records, q, drawKey(t))
		}
	})
}

func drawKey(t *rapid.T) olaptest.Key {
	some := func(label string, of ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 2, rapid.ID).Draw(t, label)
	}
	return olaptest.Key{
		Agents:    some("agents of key", olaptest.ID(0).String(), olaptest.ID(1).String(), olaptest.ID(99).String()),
		People:    some("people of key", "ada@example.com", "+15550100", "nobody@example.com"),
		Domains:   some("domains of key", "example.com", "example.org", "com"),
		MinPeople: rapid.IntRange(0, 3).Draw(t, "people"),
	}
}

func put(o *oracle.Oracle, records olaptest.Records) {
	for _, a := range records.Agents {
		o.PutAgent(a.Organization, oracle.Agent{ID: a.ID, Name: a.Name, Slug: a.Slug, DeletedAt: a.DeletedAt,
			UpdatedAt: a.UpdatedAt})
	}
	for _, r := range records.Runs {
		o.PutRun(r.Organization, oracle.Run{ID: r.ID, AgentID: r.AgentID, Kind: r.Kind, Status: r.Status,
			Identifier: r.Identifier, Name: r.Name, Type: r.Type, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt})
	}
	for _, a := range records.Attributions {
		o.PutAttribution(a.Organization, oracle.Attribution{ID: a.ID, RunID: a.RunID, AgentID: a.AgentID,
			Identifier: a.Identifier, Name: a.Name, Activity: a.Activity, InitiationType: a.InitiationType,
			Source: a.Source, OccurredAt: a.OccurredAt})
	}
}

func compare(t *rapid.T, o *oracle.Oracle, records olaptest.Records, q olaptest.Query, k olaptest.Key) {
	wanted := oracle.Query{Model: q.Model, Metrics: q.Metrics, Dimensions: q.Dimensions, Start: q.Range.Start,
		End: q.Range.End, Timezone: q.Range.Timezone, Key: oracle.Key(k)}
	for _, f := range q.Filters {
		values := f.Values
		if f.Op == "eq" {
			values = []string{f.Value}
		}
		wanted.Filters = append(wanted.Filters, oracle.Filter{Member: f.Member, Values: values})
	}
	for _, term := range q.Order {
		wanted.Order = append(wanted.Order, oracle.Term{Member: term.Member, Descending: term.Direction == "desc"})
	}
	got, err := o.Answer("acme", wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := k.Evaluate(records, "acme", q)
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v:\ngot  %v\nwant %v", q, got, want)
	}
}

// A run that moves counts on the day of its newest version, and an attribution record as it came first.
func TestContradictionsCountOnce(t *testing.T) {
	const day = 24 * time.Hour
	o, first := oracle.New(), time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	run := oracle.Run{ID: olaptest.ID(1), AgentID: olaptest.ID(2), Kind: "agent", Status: "COMPLETED"}
	for version, created := range []time.Duration{0, 2 * day, day} {
		run.CreatedAt, run.UpdatedAt = first.Add(created), first.Add(time.Duration([]int{1, 3, 2}[version])*day)
		o.PutRun("acme", run)
	}
	record := oracle.Attribution{ID: olaptest.ID(3), RunID: run.ID, AgentID: run.AgentID, Identifier: "ada@example.com"}
	for _, occurred := range []time.Duration{day, 0, 2 * day} {
		record.OccurredAt = first.Add(occurred)
		o.PutAttribution("acme", record)
	}
	for _, c := range []struct{ model, metric, day string }{
		{"agent_runs", "run_count", "2026-01-07"}, {"agent_user_activity", "attributed_run_count", "2026-01-06"},
	} {
		rows, err := o.Answer("acme", oracle.Query{Model: c.model, Metrics: []string{c.metric}, Dimensions: []string{"day"},
			Start: c.day, End: c.day, Timezone: "UTC"})
		if got, want := fmt.Sprint(rows), fmt.Sprintf("[[%s 1]]", c.day); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", c.metric, got, err, want)
		}
	}
}

// What is purged answers as if it had never been sent, and runs of a purged person stay without it.
func TestPurges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := olaptest.DrawRecords(t, "acme")
		if !olaptest.UniqueLiveSlugs(records, "acme") || len(records.Runs) == 0 {
			t.Skip("two agents that are not deleted have one slug, or there are no runs")
		}
		o := oracle.New()
		put(o, records)
		const person = "ada@example.com"
		gone := records.Runs[0].ID
		o.PurgePerson("acme", person)
		o.PurgeRuns("acme", []uuid.UUID{gone})
		left := olaptest.Records{Agents: records.Agents}
		for _, r := range records.Runs {
			if r.ID == gone {
				continue
			}
			if r.Identifier != nil && *r.Identifier == person {
				r.Identifier, r.Name = nil, nil
			}
			left.Runs = append(left.Runs, r)
		}
		left.Attributions = slices.DeleteFunc(slices.Clone(records.Attributions),
			func(a olaptest.Attribution) bool { return a.Identifier == person })
		compare(t, o, left, olaptest.DrawQuery(t), olaptest.Key{})
	})
}
