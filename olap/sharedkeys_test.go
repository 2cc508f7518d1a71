package olap_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

var earlierName, laterName = olaptest.SharingNames[0], olaptest.SharingNames[1]

// strategies are engines that answer in every way there is: from base rows, and from the rollup with a cached delta and
// with an inline one.
func strategies(conn driver.Conn) map[string]*olap.Engine {
	engines := map[string]*olap.Engine{}
	for name, options := range map[string]plan.Options{"rows": {}, "cached": asLarge, "inline": inlineDelta} {
		engines[name] = engineWith(conn, options)
		engines[name].CacheNoSizes()
	}
	return engines
}

// trusting are strategies that take the store's clock for one that is never set back.
func trusting(conn driver.Conn) map[string]*olap.Engine {
	engines := strategies(conn)
	for _, engine := range engines {
		engine.Margin(0)
	}
	return engines
}

// startedBy is a run on a day, of an agent of its own, started by somebody.
func startedBy(n int, identifier, name string) olaptest.Run {
	run := runOn(n, n, "COMPLETED")
	run.AgentID, run.Identifier, run.Name = olaptest.ShortID(n), &identifier, &name
	return run
}

// renamed is the next version of a run, by another name.
func renamed(run olaptest.Run, name string) olaptest.Run {
	run.Name, run.UpdatedAt = &name, run.UpdatedAt.Add(time.Hour)
	return run
}

// Names are distinguished by their text on every strategy: both in the rollup, one there and one in the delta, both in
// the delta, in either order, after a name has replaced the other one, and where the person also has a run without one.
func TestNamesThatShareAKey(t *testing.T) {
	t.Parallel()
	const ada = "ada@example.com"
	sample := olaptest.NewSample(5)
	for _, order := range [][2]string{{earlierName, laterName}, {laterName, earlierName}} {
		one, other, nameless := startedBy(1, ada, order[0]), startedBy(2, ada, order[1]), startedBy(3, ada, "")
		nameless.Name = nil
		for _, c := range []struct {
			name      string
			refreshed []olaptest.Run // one refresh each
			delta     []olaptest.Run
			want      [2]string // names of the runs
		}{
			{"refreshed at once", []olaptest.Run{one, other}, nil, order},
			{"one is in the delta", []olaptest.Run{one}, []olaptest.Run{other}, order},
			{"both are in the delta", nil, []olaptest.Run{one, other}, order},
			{"renamed", []olaptest.Run{one, other, renamed(one, order[1])}, nil, [2]string{order[1], order[1]}},
			{"renamed in the delta", []olaptest.Run{one, other}, []olaptest.Run{renamed(one, order[1])},
				[2]string{order[1], order[1]}},
			{"beside none", []olaptest.Run{one, other, nameless}, nil, order},
			{"beside none in the delta", nil, []olaptest.Run{one, other, nameless}, order},
		} {
			if !sample.Try() {
				continue
			}
			t.Run(order[0]+" first, "+c.name, func(t *testing.T) {
				conn := olaptest.OpenStore(t).Conn()
				refresher := rollup.New(conn, quiet, 0)
				refreshed(t, refresher)
				for _, run := range c.refreshed {
					olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{run}})
					refreshed(t, refresher)
				}
				olaptest.Load(t, conn, olaptest.Records{Runs: c.delta})
				for name, engine := range trusting(conn) {
					byAgent := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"},
						Dimensions: []string{"agent_id", "user_identifier"}, Range: january, Limit: 10}
					runs := 2.0
					for range 2 { // the second one with what the first one found
						rows := all(t, engine, "acme", byAgent)
						if len(rows) < 2 || rows[0][3] != c.want[0] || rows[1][3] != c.want[1] || len(rows) > 2 && rows[2][3] != nil {
							t.Errorf("%s: %v, want the names %q", name, rows, c.want)
						}
						runs = float64(len(rows))
					}
					// Counts of people are answered in the same way.
					people := olaptest.Query{Model: "agent_runs", Metrics: []string{"unique_initiator_count", "run_count"},
						Range: january, Limit: 1}
					if rows := all(t, engine, "acme", people); !reflect.DeepEqual(rows, [][]any{{1.0, runs}}) {
						t.Errorf("%s: %v, want one person with %v runs", name, rows, runs)
					}
				}
			})
		}
	}
}

// The first answer reports why rows were read; organizations without such names keep the rollup.
func TestOnlyTheirOrganizationReadsRows(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	refresher := rollup.New(conn, quiet, 0)
	one, other := startedBy(1, "ada@example.com", earlierName), startedBy(2, "ada@example.com", laterName)
	alone := one
	alone.Organization = "globex"
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{one, other, alone}})
	byPerson, byAgent := by(totals, "user_identifier"), by(totals, "agent_id")
	expect := func(when string) {
		t.Helper()
		for name, engine := range trusting(conn) {
			shared, other := "shared_initiator_keys", ""
			if name == "rows" {
				shared, other = "rows_below_threshold", "rows_below_threshold"
			}
			for _, c := range []struct {
				organization string
				q            olaptest.Query
				want         string
			}{{"acme", byPerson, shared}, {"acme", byAgent, other}, {"globex", byPerson, other}} {
				if got := rowsReadFor(t, engine, c.organization, c.q); got != c.want {
					t.Errorf("%s, %s: rows of %s by %v were read for %q, want %q",
						when, name, c.organization, c.q.Dimensions, got, c.want)
				}
			}
		}
	}
	refreshed(t, refresher)
	expect("refreshed")
	if err := purge.Person("acme", "ada@example.com").Run(t.Context(), conn, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}
	refreshed(t, refresher)
	for name, engine := range trusting(conn) {
		if got := rowsReadFor(t, engine, "acme", byPerson); name != "rows" && got != "" {
			t.Errorf("%s: rows were read for %q after the person was purged", name, got)
		}
	}
}

// forge stores a run whose initiator's number is that of another identifier but for one bit, as it would be for two
// identifiers with the same hash up to it. To find those that share the first 80 bits, an initiator key, takes 2^40
// attempts.
func forge(t *testing.T, conn driver.Conn, run olaptest.Run, like string, bit int) {
	t.Helper()
	of := fmt.Sprintf("bitXor(reinterpretAsUInt128(sipHash128('%s')), bitShiftLeft(toUInt128(1), %d))", like, bit)
	forged := func(column, fields string) string {
		return "(tupleElement(" + column + ", 'state'), tupleElement(" + column + ", 'agent_id'), " + of + fields + ")"
	}
	fields := ", tupleElement(record, 'initiator_identifier'), tupleElement(record, 'initiator_name')," +
		" tupleElement(record, 'parent_run_id')"
	template := run
	template.Organization = "template"
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{template}})
	execute(t, conn, fmt.Sprintf(
		"INSERT INTO runs (organization_id, run_id, created_at, state, agent, initiator, record)"+
			" SELECT '%s', run_id, created_at, state, agent, %s, %s FROM runs FINAL"+
			" WHERE organization_id = 'template' AND run_id = '%s'",
		run.Organization, forged("initiator", ""), forged("record", fields), run.ID))
}

// Two people whose identifiers share the 80 bits of the hash that an initiator key has are two on every strategy: in
// counts, as groups and in filters; and the one stays when the other is purged.
func TestIdentifiersThatShareAKey(t *testing.T) {
	t.Parallel()
	const ada, bob = "ada@example.com", "bob@example.com"
	sample := olaptest.NewSample(3)
	for _, inDelta := range []int{0, 1, 2} {
		if !sample.Try() {
			continue
		}
		t.Run(fmt.Sprintf("%d in the delta", inDelta), func(t *testing.T) {
			conn := olaptest.OpenStore(t).Conn()
			refresher := rollup.New(conn, quiet, 0)
			refreshed(t, refresher)
			for n, store := range []func(){
				func() { olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{startedBy(1, ada, "Ada")}}) },
				func() { forge(t, conn, startedBy(2, bob, "Bob"), ada, 0) },
			} {
				store()
				if n < 2-inDelta {
					refreshed(t, refresher)
				}
			}
			people := olaptest.Query{Model: "agent_runs", Metrics: []string{"unique_initiator_count", "run_count"},
				Range: january, Limit: 10}
			expect := func(when string, count float64, groups [][]any) {
				t.Helper()
				for name, engine := range trusting(conn) {
					if rows := all(t, engine, "acme", people); rows[0][0] != count || rows[0][1] != 2.0 {
						t.Errorf("%s, %s: %v, want %v people and two runs", when, name, rows, count)
					}
					grouped := people
					grouped.Dimensions = []string{"user_identifier"}
					if rows := all(t, engine, "acme", grouped); !reflect.DeepEqual(rows, groups) {
						t.Errorf("%s, %s: by person %v, want %v", when, name, rows, groups)
					}
					filtered := people
					filtered.Filters = []olaptest.Filter{{Member: "user_identifier", Op: "eq", Value: ada}}
					if rows := all(t, engine, "acme", filtered); rows[0][1] != count-1 {
						t.Errorf("%s, %s: %v runs of one of them, want %v", when, name, rows, count-1)
					}
				}
			}
			expect("stored", 2, [][]any{{ada, "Ada", 1.0, 1.0}, {bob, "Bob", 1.0, 1.0}})
			if err := purge.Person("acme", ada).Run(t.Context(), conn, func(purge.Step) {}); err != nil {
				t.Fatal(err)
			}
			left := [][]any{{bob, "Bob", 1.0, 1.0}, {nil, nil, 0.0, 1.0}}
			expect("after the purge", 1, left)
			refreshed(t, refresher)
			expect("refreshed after the purge", 1, left)
		})
	}
}

// Two people whose identifiers share the 55 bits that are packed with a day are two in the days of a year, refreshed or
// in the delta; so are those who share all but one of the bits. Only the former are counted in base rows.
func TestIdentifiersThatSharePackedBits(t *testing.T) {
	t.Parallel()
	const ada, bob = "ada@example.com", "bob@example.com"
	year := olaptest.Query{Model: "agent_runs", Metrics: []string{"unique_initiator_count", "run_count"},
		Dimensions: []string{"day"}, Range: olaptest.Range{Start: "2025-12-31", End: "2026-12-31", Timezone: "UTC"},
		Limit: 10}
	// A sample has both bits, refreshed or in the delta.
	sample := olaptest.NewSample(2)
	for bit, by := range map[int]string{72: "shared_initiator_keys", 73: ""} {
		for _, refresh := range []bool{true, false} {
			if !sample.Try() {
				continue
			}
			conn := olaptest.OpenStore(t).Conn()
			refresher := rollup.New(conn, quiet, 0)
			refreshed(t, refresher)
			one, other := startedBy(1, ada, "Ada"), startedBy(2, bob, "Bob")
			other.CreatedAt = one.CreatedAt // on one day
			olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{one}})
			forge(t, conn, other, ada, bit)
			if refresh {
				refreshed(t, refresher)
			}
			for name, engine := range trusting(conn) {
				rows := all(t, engine, "acme", year)
				if len(rows) != 1 || rows[0][1] != 2.0 || rows[0][2] != 2.0 {
					t.Errorf("bit %d, refreshed %t, %s: %v, want a day with two people and two runs", bit, refresh, name, rows)
				}
				if got := rowsReadFor(t, engine, "acme", year); name != "rows" && got != by {
					t.Errorf("bit %d, refreshed %t, %s: base rows for %q, want %q", bit, refresh, name, got, by)
				}
			}
		}
	}
}

// rowsReadFor runs a query, and returns why base rows were read; empty where the rollup was.
func rowsReadFor(t *testing.T, engine *olap.Engine, organization string, q olaptest.Query) string {
	t.Helper()
	_, by, err := answered(engine, schema.WholeOrganization(schema.OrganizationID(organization)), q.Body())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(by.Reads, "base") {
		return ""
	}
	return by.Reason
}
