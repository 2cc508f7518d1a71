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
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// counting is how many rows of attribution records count, of those with ids up to a number.
func counting(t *testing.T, conn driver.Conn, last int) uint64 {
	t.Helper()
	superseded := schema.SupersededAttributions(sql.AllOrganizations("a test has one"), []string{"clock", "id"})
	return number(t, conn, "SELECT count() FROM attributions FINAL WHERE (occurred_at, attribution_id) NOT IN"+
		sql.In(superseded)+" AND attribution_id <= toUUID('"+olaptest.ShortID(last).String()+"')")
}

// A person who is purged has copies of attribution records that were stored under two clocks. Each record counts once
// afterwards, by the copies of others. What does not count never does, wherever the purge is stopped.
func TestAPersonWithConflicts(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	// A merge would leave one copy of a clock. To stop merges would stop mutations too.
	const unmerged = "ALTER TABLE attributions MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1"
	if err := conn.Exec(t.Context(), unmerged); err != nil {
		t.Fatal(err)
	}
	at, ada, bob := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com", "bob@example.com"
	for n, copies := range [][]struct {
		person string
		at     time.Time
	}{
		{{bob, at}, {ada, at.Add(time.Hour)}, {bob, at.Add(time.Hour)}},
		{{bob, at}, {ada, at.Add(time.Hour)}},
		{{ada, at}, {bob, at.Add(time.Hour)}},
	} {
		for _, c := range copies {
			olaptest.Load(t, conn, olaptest.Records{Attributions: []olaptest.Attribution{{Organization: "acme",
				ID: olaptest.ShortID(1 + n), RunID: olaptest.ShortID(1), AgentID: olaptest.ShortID(1), Identifier: c.person,
				Activity: "interacted", InitiationType: "human", Source: "web", OccurredAt: c.at}}})
		}
	}
	if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := purge.Person("acme", ada)
	for last := range p.Steps {
		ctx, stop := context.WithCancel(t.Context())
		done := 0
		err := p.Run(ctx, conn, func(purge.Step) {
			if done++; done > last && last < len(p.Steps)-1 {
				stop()
			}
		})
		stop()
		if stopped := err != nil; stopped != (last < len(p.Steps)-1) {
			t.Fatal(err)
		}
		if n := counting(t, conn, 2); n != 2 {
			t.Errorf("two records count %d times after step %d, of %s", n, last, p.Steps[last].Table)
		}
	}
	if n := counting(t, conn, 3); n != 3 {
		t.Errorf("three records count %d times", n)
	}
	if n := number(t, conn, "SELECT count() FROM attributions WHERE user_identifier = '"+ada+"'"); n != 0 {
		t.Errorf("%d rows of the person are left", n)
	}
}
