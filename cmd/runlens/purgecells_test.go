package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	server "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/move"
)

// TestPurgesAndMoves has the tests of purges of organizations that are moved, each with organizations of its own.
func TestPurgesAndMoves(t *testing.T) {
	shared := inThreeCells(t)
	lines, _ := shared.records()
	shared.run(lines, "ingest", "-")
	in := map[string][]string{}
	for _, organization := range shared.organizations() {
		in[shared.of[organization]] = append(in[shared.of[organization]], organization)
	}
	for name, test := range map[string]func(*deployment){
		"before the end": func(d *deployment) { d.purgeBeforeAMoveEnds(in["c"][0]) },
		"noted late":     func(d *deployment) { d.purgeOfWhatIsStoredAfterAMove(in["b"][1]) },
		"ended early":    func(d *deployment) { d.purgeAfterAMoveThatEndedEarly(in["a"][0]) },
		"no files":       func(d *deployment) { d.purgeAfterAMoveLeavesNoFiles(in["c"][1]) },
		"a cell is away": func(d *deployment) { d.purgeWhileACellIsAway(in["a"][1], in["b"][0]) },
	} {
		t.Run(name, func(t *testing.T) {
			d := *shared
			d.T = t
			test(&d)
		})
	}
}

// An organization that is purged when it is open in its new cell, while its old one has still to hand over what servers
// noted there, is purged when that is done: nothing comes after it.
func (d *deployment) purgeBeforeAMoveEnds(organization string) {
	to := d.elsewhere(organization)
	d.note(organization)
	var purged chan struct{}
	err := d.move(organization, to, func(s move.Step) error {
		if s == move.Opened {
			purged = d.waiting("", "purge", "--org", organization, "--yes")
		}
		return nil
	})
	must(d, err)
	<-purged
	d.nothingLeft(organization)
}

// note has the cell that is first to have an organization note a question.
func (d *deployment) note(organization string) {
	if err := d.cells[d.of[organization]].Conn().Exec(d.Context(), "INSERT INTO usage_log (organization_id, at, key_id,"+
		" questions, took_us) VALUES ($1, now64(3), 'k', 1, 1)", organization); err != nil {
		d.Fatal(err)
	}
}

// nothingLeft finds what cells have of an organization that was purged.
func (d *deployment) nothingLeft(organization string) {
	for name, store := range d.cells {
		for _, table := range []string{"usage_log", "runs"} {
			rows := "SELECT count() FROM " + table + " WHERE organization_id = $1"
			if n := counted(d.T, store.Conn(), rows, organization); n != 0 {
				d.Errorf("%d rows of %s in %s after the purge", n, table, name)
			}
		}
	}
}

// A server notes what it answered in the last seconds before the switch when a move has taken out what was there. It
// stays in the old cell, until a purge of the organization.
func (d *deployment) purgeOfWhatIsStoredAfterAMove(organization string) {
	must(d, d.move(organization, d.elsewhere(organization), func(move.Step) error { return nil }))
	d.note(organization)
	d.run("", "purge", "--org", organization, "--yes")
	d.nothingLeft(organization)
}

// A move that ended early has left a copy in another cell: a purge waits until it has ended. Then no cell has anything.
func (d *deployment) purgeAfterAMoveThatEndedEarly(organization string) {
	to := d.elsewhere(organization)
	d.die(organization, to, move.Copied)
	d.run("", "purge", "--org", organization, "--dry-run")
	purged := d.waiting("", "purge", "--org", organization, "--yes")
	d.run("", "cells", "move", organization, "--to", to)
	<-purged
	d.nothingLeft(organization)
}

// A purge of several organizations, while a cell is away, is one of those that were never moved and are elsewhere. What
// the cell may still hand over of another one nobody knows.
func (d *deployment) purgeWhileACellIsAway(moved, stays string) {
	must(d, d.move(moved, "b", func(move.Step) error { return nil }))
	away := d.file("away.yaml", strings.Replace(cellsFile, "data_dir: c", "url: 'http://nobody@127.0.0.1:1/none'", 1))
	flags := append(d.flags[:4:4], "--cells", away)
	code, out, stderr := command(d.T, "", append([]string{"purge", "--org", moved, "--org", stays, "--yes"}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "cell c: ") {
		d.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	for organization, want := range map[string]uint64{moved: 1, stays: 0} {
		n := counted(d.T, d.cells["b"].Conn(), "SELECT count() FROM runs WHERE organization_id = $1", organization)
		if min(n, 1) != want {
			d.Errorf("b has %d runs of %s", n, organization)
		}
	}
}

// What a move has taken out of the old cell is gone from its disk too when a purge that comes after it says that
// everything is done: a question that still reads the files is waited for.
func (d *deployment) purgeAfterAMoveLeavesNoFiles(organization string) {
	const identifier = "xk7qzwv3j@jt9.example"
	d.run(`{"record":"run","organization_id":"`+organization+`","run_id":"00000001-0000-4000-8000-000000000000",`+
		`"agent_id":"00000001-0000-4000-8000-000000000000","status":"COMPLETED","initiator_identifier":"`+identifier+`",`+
		`"created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-05T10:00:00Z"}`, "ingest", "-")
	from, to := d.of[organization], d.elsewhere(organization)
	left := func() []string {
		return found(d.T, d.cells[from].Conn(), filepath.Join(d.dirs[from], "engine"), identifier)[identifier]
	}
	asking, stop := context.WithCancel(d.Context())
	asked := make(chan error, 1)
	go func() {
		// A block for each of some runs. It is over when a block is.
		ctx := server.Context(asking, server.WithQueryID("slow"), server.WithSettings(server.Settings{"max_block_size": 1,
			"min_joined_block_size_rows": 1, "min_joined_block_size_bytes": 1, "function_sleep_max_microseconds_per_block": 0,
			"readonly": 2, "cancel_http_readonly_queries_on_client_close": 1}))
		asked <- d.cells[from].Conn().Exec(ctx,
			"SELECT count() FROM runs CROSS JOIN numbers(80) AS n WHERE NOT ignore(sleepEachRow(0.1))")
	}()
	if !harness.Poll(d.Context(), time.Minute, 10*time.Millisecond, func() bool {
		return counted(d.T, d.cells[from].Conn(), "SELECT count() FROM system.processes WHERE query_id = 'slow'") > 0
	}) {
		d.Fatal("nobody reads the files")
	}
	d.run("", "cells", "move", organization, "--to", to)
	purged := make(chan int, 1)
	go func() {
		code, _, _ := command(d.T, "", append([]string{"purge", "--org", organization, "--yes"}, d.flags...)...)
		purged <- code
	}()
	const done = "SELECT count() FROM audit_log WHERE action = 'purge' AND outcome = 'done' AND organization_id = $1"
	if !harness.Poll(d.Context(), time.Minute, 10*time.Millisecond, func() bool {
		return counted(d.T, d.cells[to].Conn(), done, organization) > 0
	}) {
		d.Fatal("nothing is purged")
	}
	select {
	case code := <-purged:
		d.Errorf("the purge has ended, and these are left: %v", left())
		purged <- code
	case <-time.After(2 * time.Second):
	}
	stop()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		d.Errorf("the question that reads the files: %v", err)
	}
	if code, places := <-purged, left(); code != exitDone || len(places) > 0 {
		d.Errorf("%d; after the purge: %v", code, places)
	}
}
