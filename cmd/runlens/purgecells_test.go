package main

import (
	"testing"

	"github.com/runlens/runlens/ingest/move"
)

// An organization that is purged when it is open in its new cell, while its old one has still to hand over what servers
// noted there, is purged when that is done: nothing comes after it.
func TestAPurgeBeforeAMoveEnds(t *testing.T) {
	d := inThreeCells(t)
	lines, _ := d.records()
	d.run(lines, "ingest", "-")
	organization, to := d.organizations()[0], "b"
	if d.of[organization] == to {
		to = "c"
	}
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
