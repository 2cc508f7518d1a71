package main

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/move"
)

// A drain goes on with the moves that another command began, wherever they go and however far they are, and takes a
// slot and its pinned organizations one after the other. Then nothing is left in the cell.
func TestDrainAfterMovesThatEndedEarly(t *testing.T) {
	d := inCellsOf(t, "cells:\n- {name: a, weight: 2, data_dir: a}\n- {name: b, weight: 126, data_dir: b}\n"+
		"- {name: c, weight: 128, data_dir: c}\n")
	lines, runs := d.records()
	d.run(lines, "ingest", "-")
	var in []string
	for _, organization := range d.organizations() {
		if d.of[organization] == "a" {
			in = append(in, organization)
		}
	}
	d.die(in[0], "c", move.Switched)
	d.die(in[1], "b", move.Begun)
	d.run("", "cells", "drain", "a")
	_, out := d.run("", "cells", "list")
	if strings.Contains(out, "organization:") {
		t.Errorf("moves have not ended:\n%s", out)
	}
	for i, to := range []string{"c", "b"} {
		if _, in := d.run("", "cells", "of", in[i]); in != to+"\n" {
			t.Errorf("it is in %s, want %s", in, to)
		}
		var left, here uint64
		const count = "SELECT count() FROM runs FINAL WHERE organization_id = $1"
		for name, n := range map[string]*uint64{"a": &left, to: &here} {
			must(t, d.cells[name].Conn().QueryRow(t.Context(), count, in[i]).Scan(n))
		}
		if left != 0 || here != uint64(runs[in[i]]) {
			t.Errorf("%d runs are in a and %d in %s, want 0 and %d", left, here, to, runs[in[i]])
		}
	}
}
