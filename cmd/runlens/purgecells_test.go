package main

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/move"
)

// An organization that is purged when it is open in its new cell, while its old one has still to hand over what servers
// noted there, is purged when that is done: nothing comes after it.
func TestAPurgeBeforeAMoveEnds(t *testing.T) {
	d := inThreeCells(t)
	lines, _ := d.records()
	d.run(lines, "ingest", "-")
	organization := d.organizations()[0]
	to := d.elsewhere(organization)
	from := d.cells[d.of[organization]].Conn()
	if err := from.Exec(t.Context(), "INSERT INTO usage_log (organization_id, at, key_id, questions, took_us)"+
		" VALUES ($1, now64(3), 'k', 1, 1)", organization); err != nil {
		t.Fatal(err)
	}
	var purged chan struct{}
	err := d.move(organization, to, func(s move.Step) error {
		if s == move.Opened {
			purged = d.waiting("", "purge", "--org", organization, "--yes")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-purged
	for name, store := range d.cells {
		for _, table := range []string{"usage_log", "runs"} {
			if n := counted(t, store.Conn(), "SELECT count() FROM "+table+" WHERE organization_id = $1", organization); n != 0 {
				t.Errorf("%d rows of %s in %s after the purge", n, table, name)
			}
		}
	}
}

// A move that ended early has left a copy in another cell: a purge waits until it has ended. Then no cell has anything.
func TestAPurgeAfterAMoveThatEndedEarly(t *testing.T) {
	d := inThreeCells(t)
	lines, _ := d.records()
	d.run(lines, "ingest", "-")
	organization := d.organizations()[4]
	to := d.elsewhere(organization)
	d.die(organization, to, move.Copied)
	d.run("", "purge", "--org", organization, "--dry-run")
	purged := d.waiting("", "purge", "--org", organization, "--yes")
	d.run("", "cells", "move", organization, "--to", to)
	<-purged
	for name, store := range d.cells {
		if n := counted(t, store.Conn(), "SELECT count() FROM runs WHERE organization_id = $1", organization); n != 0 {
			t.Errorf("%d runs in %s after the purge", n, name)
		}
	}
}

// A purge of several organizations, while a cell is away, is one of those that were never moved and are elsewhere. What
// the cell may still hand over of another one nobody knows.
func TestAPurgeWhileACellIsAway(t *testing.T) {
	d := inThreeCells(t)
	lines, _ := d.records()
	d.run(lines, "ingest", "-")
	var moved, stays string
	for _, organization := range d.organizations() {
		switch cell := d.of[organization]; {
		case cell == "a" && moved == "":
			moved = organization
		case cell == "b" && stays == "":
			stays = organization
		}
	}
	if err := d.move(moved, "b", func(move.Step) error { return nil }); err != nil {
		t.Fatal(err)
	}
	away := d.file("away.yaml", strings.Replace(cellsFile, "data_dir: c", "url: 'http://nobody@127.0.0.1:1/none'", 1))
	flags := append(d.flags[:4:4], "--cells", away)
	code, out, stderr := command(t, "", append([]string{"purge", "--org", moved, "--org", stays, "--yes"}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "cell c: ") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	for organization, want := range map[string]uint64{moved: 1, stays: 0} {
		n := counted(t, d.cells["b"].Conn(), "SELECT count() FROM runs WHERE organization_id = $1", organization)
		if min(n, 1) != want {
			t.Errorf("b has %d runs of %s", n, organization)
		}
	}
}
