package purge_test

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A purge sends no statement to tables that have nothing of the organization, and names the partitions that have
// something. ClickHouse evaluates nothing for the parts of all others.
func TestPurgeChangesWhatHasTheOrganization(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	ada := "ada@example.com"
	var records olaptest.Records
	for month := range 12 {
		at := time.Date(2025, time.Month(1+month), 5, 10, 0, 0, 0, time.UTC)
		for i, organization := range []string{"globex", "initech", "acme"} {
			if organization == "acme" && month != 3 {
				continue // it was there in April only
			}
			id := olaptest.ID(3*month + i)
			records.Runs = append(records.Runs, olaptest.Run{Organization: organization, ID: id, CreatedAt: at,
				AgentID: olaptest.ID(1), Kind: "agent", Status: "RUNNING", Identifier: &ada, UpdatedAt: at})
			records.Attributions = append(records.Attributions, olaptest.Attribution{Organization: organization, ID: id,
				RunID: id, AgentID: olaptest.ID(1), Identifier: ada, Activity: "initiated", InitiationType: "human",
				Source: "web", OccurredAt: at})
		}
	}
	olaptest.Load(t, conn, records)
	if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := purge.Organization("acme").Run(t.Context(), conn, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}

	var statements []struct {
		Table      string   `ch:"table"`
		Partitions []string `ch:"partitions"`
	}
	if err := conn.Select(t.Context(), &statements, "SELECT table, arraySort(groupUniqArray(extract(command,"+
		" 'IN PARTITION ID .+?([0-9a-z]+)'))) AS partitions FROM system.mutations"+
		" WHERE database = currentDatabase() GROUP BY table"); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, s := range statements {
		got[s.Table] = s.Partitions
	}
	want := map[string][]string{
		"runs": {"202504"}, "attributions": {"202504"}, "rollup_runs": {"20252"}, "rollup_attributions": {"20252"},
		"initiator_keys": {"all"}, "insert_counters": {"all"}, "rollup_log": {"all"},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("tables and partitions that were changed: %v, want %v", got, want)
	}
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if n := number(t, conn, "SELECT count() FROM "+table+" WHERE organization_id = 'acme'"); n != 0 {
			t.Errorf("%s: %d rows are left", table, n)
		}
		if n := number(t, conn, "SELECT count() FROM "+table+" WHERE organization_id != 'acme'"); n == 0 {
			t.Errorf("%s: nothing is left", table)
		}
	}
}
