package maintain_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/olaptest"
)

// Every partition comes into one merged part, and no row is lost, doubled or changed by it.
func TestCompacts(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for version := range 3 {
		var records olaptest.Records
		for i := range 40 {
			run := olaptest.Run{Organization: "acme", ID: olaptest.ID(i), CreatedAt: at.AddDate(0, i%4, 0),
				AgentID: olaptest.ID(1), Kind: "agent", Status: []string{"RUNNING", "PAUSED", "COMPLETED"}[version],
				UpdatedAt: at.Add(time.Duration(version) * time.Hour)}
			records.Runs = append(records.Runs, run)
			records.Attributions = append(records.Attributions, run.By("ada@example.com"))
		}
		olaptest.Load(t, conn, records)
	}
	number := func(query string) (n uint64) {
		t.Helper()
		if err := conn.QueryRow(context.Background(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const sum = "SELECT sum(cityHash64(run_id, created_at, state, record, first_stored_at)) FROM runs FINAL"
	before := number(sum)
	steps := compact(t, conn)
	if steps == 0 {
		t.Error("there was nothing to merge")
	}
	if n := number("SELECT count() FROM system.parts WHERE database = currentDatabase() AND active AND table IN " +
		"('runs', 'attributions')"); n != 8 {
		t.Errorf("%d parts, want one in each of 4 months of 2 tables", n)
	}
	if rows, after := number("SELECT count() FROM runs"), number(sum); rows != 40 || after != before {
		t.Errorf("%d runs, want 40; checksum %d, before %d", rows, after, before)
	}
	if rows := number("SELECT count() FROM attributions"); rows != 40 {
		t.Errorf("%d attributions, want 40", rows)
	}
}

// A worker ends with its context, whatever its task does.
func TestRunEnds(t *testing.T) {
	store := olaptest.OpenStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		maintain.New("compact", maintain.NewCompactor(store.Conn(), 0), slog.New(slog.DiscardHandler), 0.1,
			time.Hour, store.Conn().Ping).Run(ctx)
		close(ended)
	}()
	cancel()
	<-ended
}

// A partition that is written to is left alone until enough has come.
func TestLeavesBusyPartitionsAlone(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	step := func() bool {
		more, err := maintain.NewCompactor(conn, time.Hour).Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	load(t, conn, at, 0, 100)
	load(t, conn, at, 100, 105)
	if step() {
		t.Error("merged for 5 rows outside a part of 100")
	}
	load(t, conn, at, 105, 120)
	if !step() {
		t.Error("did not merge for 20 rows outside a part of 100")
	}
}

// A partition that cannot be merged, because a projection was added and older parts do not have it yet, is no reason to
// tried again at once, nor keeps others waiting.
func TestPassesOverWhatCannotBeMerged(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	load(t, conn, at, 0, 100)
	if err := conn.Exec(context.Background(),
		"ALTER TABLE runs ADD PROJECTION later (SELECT organization_id, run_id ORDER BY run_id)"); err != nil {
		t.Fatal(err)
	}
	load(t, conn, at, 100, 150) // these two cannot be merged, and have the most to merge
	load(t, conn, at.AddDate(0, 1, 0), 200, 220)
	load(t, conn, at.AddDate(0, 1, 0), 220, 230)
	compact(t, conn)
	var parts, months uint64
	if err := conn.QueryRow(context.Background(), "SELECT count(), uniqExact(partition_id) FROM system.parts WHERE "+
		"database = currentDatabase() AND active AND table = 'runs'").Scan(&parts, &months); err != nil {
		t.Fatal(err)
	}
	if parts != 3 || months != 2 {
		t.Errorf("%d parts in %d months, want 3 in 2: the second month was to be merged", parts, months)
	}
}

// A partition whose merge fails, as where a part is damaged, keeps no other one waiting, and is reported every time.
func TestPassesOverAMergeThatFails(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	load(t, conn, at, 0, 100)
	load(t, conn, at, 100, 150) // these two have the most to merge
	load(t, conn, at.AddDate(0, 1, 0), 200, 220)
	load(t, conn, at.AddDate(0, 1, 0), 220, 230)
	if err := conn.Exec(context.Background(), "ALTER TABLE runs ADD COLUMN damaged UInt8 DEFAULT "+
		"throwIf(created_at < '2026-02-01')"); err != nil {
		t.Fatal(err)
	}
	c := maintain.NewCompactor(conn, 0)
	if more, err := c.Step(context.Background()); err == nil || !more || c.Did() != "merge" {
		t.Errorf("more is %v (%v), want the second month merged and the first reported", more, err)
	}
	if more, err := c.Step(context.Background()); err == nil || more || c.Did() != "merge" {
		t.Errorf("more is %v (%v), want nothing merged and the first month reported", more, err)
	}
}

// compact merges until nothing is left to do, and returns in how many steps.
func compact(t *testing.T, conn driver.Conn) (steps int) {
	t.Helper()
	c := maintain.NewCompactor(conn, 0)
	for ; ; steps++ {
		merged, err := c.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if (c.Did() == "merge") != merged {
			t.Errorf("a step that merged, %v, did %q", merged, c.Did())
		}
		if !merged {
			return steps
		}
		if steps > 100 {
			t.Fatal("it never comes to an end")
		}
	}
}

// load stores runs of one millisecond.
func load(t *testing.T, conn driver.Conn, at time.Time, from, to int) {
	t.Helper()
	var records olaptest.Records
	for i := from; i < to; i++ {
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ID(i), CreatedAt: at,
			AgentID: olaptest.ID(1), Kind: "agent", Status: "RUNNING", UpdatedAt: at})
	}
	olaptest.Load(t, conn, records)
}
