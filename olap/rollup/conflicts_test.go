package rollup_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

var clock = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// version is a version of a run, from hours after clock, created later by move.
func version(organization string, id, hours int, move time.Duration) olaptest.Run {
	ada := "ada@example.com"
	return olaptest.Run{Organization: organization, ID: olaptest.ID(id), AgentID: olaptest.ID(1),
		CreatedAt: clock.Add(move), Kind: "agent",
		Status: "COMPLETED", Identifier: &ada, Name: &ada, UpdatedAt: clock.Add(time.Duration(hours) * time.Hour)}
}

func copyOf(organization string, id int, activity string, move time.Duration) olaptest.Attribution {
	record := version(organization, id, 0, move).By("ada@example.com")
	record.Activity = activity
	return record
}

// consistent stores two runs and two attribution records as they should stay.
func consistent(t *testing.T, conn driver.Conn, organization string) {
	t.Helper()
	olaptest.Load(t, conn, olaptest.Records{
		Runs: []olaptest.Run{version(organization, 1, 1, 0), version(organization, 2, 1, 0)},
		Attributions: []olaptest.Attribution{
			copyOf(organization, 1, "interacted", 0), copyOf(organization, 2, "initiated", 0),
		},
	})
}

// broken stores what consistent stored once more, as it should never come again.
func broken(t *testing.T, conn driver.Conn, organization string) {
	t.Helper()
	olaptest.Load(t, conn, olaptest.Records{
		Runs: []olaptest.Run{version(organization, 1, 2, time.Millisecond)},
		Attributions: []olaptest.Attribution{
			copyOf(organization, 1, "interacted", 61*24*time.Hour), copyOf(organization, 2, "interacted", 0),
		},
	})
}

// once checks what broken has left, one refresh later.
func once(t *testing.T, conn driver.Conn, organization string) {
	t.Helper()
	of := " WHERE organization_id = '" + organization + "'"
	for query, want := range map[string]int64{
		"SELECT toInt64(countIf(bitAnd(bitShiftRight(state, 3), 7) = 1)) FROM runs FINAL" +
			of: 2,
		"SELECT toInt64(countIf(bitAnd(bitShiftRight(state, 3), 7) = 1)) FROM runs FINAL" + of +
			" AND created_at = '2026-01-05 10:00:00'": 1,
		"SELECT toInt64(sum(runs)) FROM rollup_runs" + of:               2,
		"SELECT toInt64(sum(interacted)) FROM rollup_attributions" + of: 1,
		"SELECT toInt64(count()) FROM attributions FINAL" + of +
			" AND activity_type = 'interacted' AND (occurred_at, attribution_id) NOT IN (" +
			schema.SupersededAttributions(sql.AllOrganizations("a test names one"), []string{"clock", "id"},
				"organization_id = '"+organization+"'").String() + ")": 1,
		"SELECT toInt64(uniqExact(created_at)) FROM runs" + of + " AND NOT " + schema.CurrentRunSQL: 1,
	} {
		if n := number(t, conn, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}

// countedOnce checks what broken has left of organizations, when all of it was refreshed.
func countedOnce(t *testing.T, conn driver.Conn, organizations []string) {
	t.Helper()
	all(t, conn)
	all(t, conn) // the marks
	for _, organization := range organizations {
		once(t, conn, organization)
	}
	sound(t, conn)
}

// A refresher that dies between any two of its statements leaves what the next one makes right. One that dies after a
// statement without its outcome leaves the same as one that dies before the statement after it.
func TestConflictsSurviveCrashes(t *testing.T) {
	defer rollup.SetClaimAge(rollup.SetClaimAge(0))
	conn := olaptest.OpenStore(t).Conn()
	const most, of = 30, 4 // statements
	least := 6             // before the commit: the claim, two notes, marks, names, two tables
	if testing.Short() {
		least -= of - 1 // the last ones may be none of the sample
	}
	var organizations []string
	last, crashed, sample := 0, true, olaptest.NewSample(of)
	for after := 0; crashed && after < most; after++ {
		if !sample.Try() {
			continue
		}
		organization := fmt.Sprintf("after-%02d", after)
		organizations = append(organizations, organization)
		consistent(t, conn, organization)
		all(t, conn)
		broken(t, conn, organization)
		err := rollup.New(&dyingConn{Conn: conn, left: after}, quiet, 0).Refresh(ctx)
		if crashed = err != nil; crashed {
			last = after
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
		}
		all(t, conn)
	}
	countedOnce(t, conn, organizations)
	if last < least || crashed {
		t.Errorf("the last crash was after %d statements", last)
	}
}

// Conflicts are reported in the log by organization, without what identifies a person, and in a metric of every server:
// it is read from the store, since another process may have resolved them. Superseded marks have no data of a person.
func TestConflictsAreReported(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	consistent(t, conn, "acme")
	all(t, conn)
	broken(t, conn, "acme")
	var log bytes.Buffer
	refresher := rollup.New(conn, slog.New(slog.NewTextHandler(&log, nil)), 0)
	if err := refresher.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	all(t, conn) // the marks too
	once(t, conn, "acme")
	for _, want := range []string{"organization=acme record=run count=1", "organization=acme record=attribution count=2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "ada") {
		t.Errorf("the log names a person:\n%s", log.String())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(snapshot.ConflictMetric(conn))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "runlens_conflicting_records" {
			for _, m := range f.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if counted[schema.ConflictRun] != 1 || counted[schema.ConflictAttribution] != 2 {
		t.Errorf("%v, want 1 run and 2 attribution records", counted)
	}
	execute(t, conn, "OPTIMIZE TABLE runs FINAL")
	const personal = "SELECT toInt64(countIf(isNotNull(tupleElement(record, 'initiator_identifier')) OR " +
		"isNotNull(tupleElement(record, 'initiator_name')) OR tupleElement(initiator, 'initiator') != 0))" +
		" FROM runs WHERE NOT " + schema.CurrentRunSQL
	if n := number(t, conn, personal); n != 0 {
		t.Error("a mark has who started the run")
	}
}

// A version that wins under a superseded clock makes that clock count again, whatever the order, and a repeat of an
// older one changes nothing for longer than a refresh.
func TestRunsMoveBackAndForth(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for i, v := range []struct{ hours, move int }{{1, 0}, {2, 1}, {3, 0}, {4, 1}, {4, 0}, {4, 2}, {1, 0}, {3, 0},
		{5, -1}} {
		olaptest.Load(t, conn,
			olaptest.Records{Runs: []olaptest.Run{version("acme", 1, v.hours, time.Duration(v.move)*time.Millisecond)}})
		all(t, conn)
		want := clock.UnixMilli() + []int64{0, 1, 0, 1, 1, 2, 2, 2, -1}[i]
		for _, from := range []string{
			"SELECT toUnixTimestamp64Milli(created_at) FROM runs FINAL WHERE bitAnd(bitShiftRight(state, 3), 7) = 1",
			"SELECT toInt64(sum(toUnixTimestamp64Milli(created_at) * runs)) FROM rollup_runs",
		} {
			if strings.Contains(from, "rollup_runs") {
				all(t, conn) // the marks too
			}
			if n := number(t, conn, from); n != want {
				t.Errorf("step %d: %s: %d, want %d", i, from, n, want)
			}
		}
	}
	sound(t, conn)
}
