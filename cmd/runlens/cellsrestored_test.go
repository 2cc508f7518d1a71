package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

// A cell that is restored to what it was before a move says that the organization is in it, and has its keys as they
// were. None of them that was revoked since is valid again, and a server tells the cell where the organization is.
// Before that, a key that is revoked is so where it counts, whichever cell the command asked first.
func TestACellRestoredToBeforeAMove(t *testing.T) {
	d := inThreeCells(t)
	lines, _ := d.records()
	d.run(lines, "ingest", "-")
	moved, quiet := d.organizations()[0], slog.New(slog.DiscardHandler)
	from, to := d.of[moved], d.elsewhere(moved)
	early, key := d.key(moved)
	late, _ := d.key(moved)
	old := d.cells[from].Conn()
	each := func(statement func(table string) string) {
		t.Helper()
		for _, table := range []string{schema.TablePlacement, schema.TableAPIKeys} {
			must(t, old.Exec(t.Context(), statement(table)))
		}
	}
	each(func(table string) string {
		return "CREATE TABLE before_" + table + " ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM " + table
	})
	must(t, d.move(moved, to, func(move.Step) error { return nil }))
	app, err := startApp(t.Context(), serveWith(t, append(d.flags, "--rate-limit-per-minute", "100000")...), quiet)
	must(t, err)
	t.Cleanup(func() { app.Close(context.Background()) })
	base := "http://" + app.Address()
	answers := func(want int, within time.Duration) bool {
		return harness.Poll(t.Context(), within, 100*time.Millisecond, func() bool {
			status, _ := post(t, base, key, countRuns)
			return status == want
		})
	}
	d.run("", "keys", "revoke", early)
	if !answers(401, revoked) {
		t.Fatal("a key that was revoked is valid")
	}
	restore := func() {
		each(func(table string) string { return "TRUNCATE TABLE " + table })
		each(func(table string) string { return "INSERT INTO " + table + " SELECT * FROM before_" + table })
	}
	restore()
	if answers(200, 5*time.Second) {
		t.Error("a key that was revoked is valid again: the cell that was restored says so")
	}
	if !harness.Poll(t.Context(), time.Minute, 100*time.Millisecond, func() bool {
		told, err := cells.Read(t.Context(), old)
		return err == nil && !told.Reads(from, schema.OrganizationID(moved))
	}) {
		t.Error("nobody told the cell that was restored")
	}

	must(t, app.Close(t.Context()))
	restore()
	p, err := storeFlags{Cells: d.flags[5], EngineLib: d.flags[3], EngineMemory: 1 << 30}.named()
	must(t, err)
	placement, err := cells.Find(t.Context(), p.list, map[string]driver.Conn{from: old})
	must(t, err)
	p.know(placement)
	owns := func(cell string) bool { return p.flags[cell].owns()(schema.OrganizationID(moved)) }
	inNew := owns(to)
	stores, err := p.open(t.Context(), quiet, openMigrated)
	must(t, err)
	defer closeAll(stores)
	if inNew == owns(from) {
		t.Error("who goes through the cells, and opens them meanwhile, has the organization in none or in two")
	}
	if cell := p.nameOf(schema.OrganizationID(moved)); cell != to {
		t.Errorf("the key %s would be revoked in the cell %s", late, cell)
	}
}
