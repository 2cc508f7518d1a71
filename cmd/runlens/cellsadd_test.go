package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// add adds a cell: it gets its name, and nothing is placed there before it is moved.
func (d *deployment) add() {
	d.Helper()
	four := []string{"--cells", d.file("four.yaml", cellsFile+"- {name: d, data_dir: d}\n"), "--engine-lib",
		clickhousetest.Library()}
	code, out, stderr := command(d.T, "", append([]string{"cells", "add", "d"}, four...)...)
	if code != exitDone || strings.Count(out, "runlens cells move slot:") != 64 || strings.Count(out, " --to d ") != 64 {
		d.Errorf("a new cell: %d\n%s%s", code, out, stderr)
	}
	if code, out, _ := command(d.T, "", append([]string{"cells", "list", "--json"}, four...)...); code != exitDone ||
		!strings.Contains(out, `{"cell":"d","slots":0,`) {
		d.Errorf("%d\n%s", code, out)
	}
	// Without records it has nothing to compare, and the others are what is proved.
	d.run("", "rollup", "rebuild")
	code, out, stderr = command(d.T, "", append([]string{"rollup", "check"}, four...)...)
	if code != exitDone || strings.Count(out, "the rollup equals") != 3 ||
		strings.Count(stderr, "nothing was compared") != 1 {
		d.Errorf("rollup check: %d\n%s%s", code, out, stderr)
	}
	if code, _, stderr := command(d.T, "", append([]string{"cells", "add", "e"}, four...)...); code != exitUsage {
		d.Errorf("a cell that the file does not name: %d %s", code, stderr)
	}
}

// awaitUsage waits until the question of an organization is in its usage log, which servers write every few seconds.
func (d *deployment) awaitUsage(organization string) {
	d.Helper()
	conn := d.cells[d.of[organization]].Conn()
	if !harness.Poll(d.Context(), time.Minute, 100*time.Millisecond, func() bool {
		return counted(d.T, conn, "SELECT count() FROM usage_log WHERE organization_id = $1", organization) > 0
	}) {
		d.Fatalf("the question of %s is not in its usage log", organization)
	}
}

// The tables over all cells are of servers; an embedded engine can't be reached by another one.
func TestTablesOverCells(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cells.yaml")
	write := func(text string) {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("cells:\n- {name: eu-1, url: 'clickhouse://u@ch1:9001/records'}\n- {name: eu-2, url: 'https://u@ch2:8443/r'}\n")
	code, out, stderr := command(t, "", "cells", "ddl", "--cells", path)
	for _, want := range []string{"While organizations are moved, queries of these tables are wrong",
		"<host>ch1</host>", "<port>9001</port>", "<default_database>records</default_database>", "<port>9440</port>",
		"<secure>1</secure>", `from_env="RUNLENS_EU_2_PASSWORD"`,
		"CREATE TABLE IF NOT EXISTS all_runs AS runs ENGINE = Distributed('runlens_cells', '', 'runs');"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%d %s; no %s in\n%s", code, stderr, want, out)
		}
	}
	write(cellsFile)
	if code, _, stderr := command(t, "", "cells", "ddl", "--cells", path); code != exitFailed ||
		!strings.Contains(stderr, "is an embedded engine") {
		t.Errorf("%d %s", code, stderr)
	}
}
