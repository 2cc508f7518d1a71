package purge_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// While an organization or a person of it is purged, its questions are answered from the base tables, and those of
// others from the rollup, at every statement that changes a table of records or of the rollup.
func TestOnlyThePurgedOrganizationLeavesTheRollup(t *testing.T) {
	// Nothing is changed in tables that have nothing of either.
	tables := []string{"initiator_keys", "rollup_runs", "rollup_attributions", "runs", "attributions"}
	for name, p := range map[string]*purge.Purge{
		"an organization": purge.Organization("acme"),
		"a person":        purge.Person("acme", "ada@example.com"),
	} {
		conn := olaptest.OpenStore(t).Conn()
		at, ada := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com"
		for _, organization := range []string{"acme", "globex"} {
			olaptest.Load(t, conn, olaptest.Records{
				Runs: []olaptest.Run{{Organization: organization, ID: olaptest.ID(1), CreatedAt: at, AgentID: olaptest.ID(1),
					Kind: "agent", Status: "RUNNING", Identifier: &ada, UpdatedAt: at}},
				Attributions: []olaptest.Attribution{{Organization: organization, ID: olaptest.ID(1), RunID: olaptest.ID(1),
					AgentID: olaptest.ID(1), Identifier: ada, Activity: "initiated", InitiationType: "human", Source: "web",
					OccurredAt: at}},
			})
		}
		if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := olaptest.Hold(conn)
		seen := 0
		for _, table := range tables {
			held.After("ALTER TABLE "+table+" ", func() {
				seen++
				use(t, conn, name+", "+table, map[schema.OrganizationID]bool{"acme": false, "globex": true})
			})
		}
		if err := p.Run(t.Context(), held, func(purge.Step) {}); err != nil {
			t.Fatal(err)
		}
		if seen != len(tables) {
			t.Errorf("%s: %d tables were changed, want %d", name, seen, len(tables))
		}
		use(t, conn, name+", at the end", map[schema.OrganizationID]bool{"acme": true, "globex": true})
	}
}

// use checks which organizations' questions may use the rollup.
func use(t *testing.T, conn driver.Conn, when string, want map[schema.OrganizationID]bool) {
	t.Helper()
	state, err := snapshot.ReadLog(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for organization, may := range want {
		for _, source := range []string{schema.TableRuns, schema.TableAttributions} {
			of := snapshot.Records{Organization: organization, Source: source}
			if got := !state.Watermark(of).IsZero(); got != may {
				t.Errorf("%s: %s of %s: may use the rollup: %t, want %t", when, source, organization, got, may)
			}
		}
	}
}
