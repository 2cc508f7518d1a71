package rollup_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// What is stored without having been counted, as by a restore, is counted once, and what was counted is not again.
func TestCount(t *testing.T) {
	ctx := t.Context()
	conn := olaptest.OpenStore(t).Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	load := func(organization string, n int) {
		records := olaptest.Records{}
		for i := range n {
			records.Runs = append(records.Runs, olaptest.Run{Organization: organization, ID: olaptest.ID(i), CreatedAt: at,
				AgentID: olaptest.ID(1), Kind: "agent", Status: "RUNNING", UpdatedAt: at})
		}
		olaptest.Load(t, conn, records)
	}
	load("acme", 3)
	execute(t, conn, "TRUNCATE TABLE "+schema.TableInsertCounters)
	load("acme", 1) // again: a merge may make it one row with the first
	load("globex", 2)
	for range 2 {
		if err := rollup.Count(ctx, conn); err != nil {
			t.Fatal(err)
		}
	}
	for organization, want := range map[string]uint64{"acme": 4, "globex": 2} {
		var got, stored uint64
		err := conn.QueryRow(ctx, "SELECT sum(rows), (SELECT count() FROM runs WHERE organization_id = '"+organization+
			"') FROM insert_counters WHERE source = 'runs' AND organization_id = '"+organization+"'").Scan(&got, &stored)
		if err != nil || got < stored || got > want {
			t.Errorf("%s: %d rows are counted, %d stored, at most %d came: %v", organization, got, stored, want, err)
		}
	}
}
