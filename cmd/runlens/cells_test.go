package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/schema"
)

// A deployment is three cells, each an embedded engine of its own.
type deployment struct {
	*testing.T
	dir   string
	flags []string
	cells map[string]*clickhouse.Server
	dirs  map[string]string // of the cells
	of    map[string]string // the cell of an organization
}

const cellsFile = "cells:\n- {name: a, data_dir: a}\n- {name: b, data_dir: b}\n- {name: c, data_dir: c}\n"

func inThreeCells(t *testing.T) *deployment {
	t.Helper()
	return inCellsOf(t, cellsFile)
}

func inCellsOf(t *testing.T, file string) *deployment {
	t.Helper()
	t.Parallel() // it waits more than it works
	dir := memory.TempDir(t)
	d := &deployment{T: t, dir: dir, cells: map[string]*clickhouse.Server{}, of: map[string]string{},
		dirs: map[string]string{"a": filled(t), "b": filled(t), "c": filled(t)}}
	d.flags = []string{"--data-dir", dir, "--engine-lib", clickhousetest.Library(), "--cells", d.file("cells.yaml", file)}
	quiet := slog.New(slog.DiscardHandler)
	p, err := storeFlags{Cells: d.flags[5], EngineLib: d.flags[3], EngineMemory: 1 << 30}.place(t.Context(), quiet)
	must(t, err)
	defer p.Close()
	stores, err := p.open(t.Context(), quiet, openMigrated)
	must(t, err)
	t.Cleanup(func() { closeAll(stores) })
	for i, name := range []string{"a", "b", "c"} {
		d.cells[name] = stores[i]
	}
	for n := 0; len(d.of) < 6; n++ { // two organizations in each
		organization := fmt.Sprint("org-", n)
		cell, there := p.nameOf(schema.OrganizationID(organization)), 0
		for _, other := range d.of {
			if other == cell {
				there++
			}
		}
		if there < 2 {
			d.of[organization] = cell
		}
	}
	return d
}

// file writes a file, in which data_dir: a is that of the cell a.
func (d *deployment) file(name, text string) string {
	d.Helper()
	for cell, dir := range d.dirs {
		text = strings.ReplaceAll(text, "data_dir: "+cell+"}", "data_dir: "+dir+"}")
	}
	path := filepath.Join(d.dir, name)
	must(d, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run runs a command that succeeds.
func (d *deployment) run(stdin string, args ...string) (stderr, out string) {
	d.Helper()
	code, out, stderr := command(d.T, stdin, append(args, d.flags...)...)
	if code != exitDone {
		d.Fatalf("%v: exit code %d\n%s%s", args, code, out, stderr)
	}
	return stderr, out
}

// records are as many runs of each organization as its place in the order, from 1, on three days.
func (d *deployment) records() (lines string, runs map[string]int) {
	runs = map[string]int{}
	for i, organization := range d.organizations() {
		runs[organization] = i + 1
		for n := range i + 1 {
			lines += fmt.Sprintf(`{"record":"run","organization_id":%q,"run_id":"00000000-0000-4000-8000-%012d",`+
				`"agent_id":"00000000-0000-4000-8000-000000000000","kind":"agent","status":"COMPLETED",`+
				`"created_at":"2026-01-%02[3]dT10:00:00Z","updated_at":"2026-01-%02[3]dT10:00:00Z"}`+"\n", organization, n, 5+n%3)
		}
	}
	return lines, runs
}

func (d *deployment) organizations() (names []string) {
	for name := range d.of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// elsewhere is a cell that an organization may be moved to, b or c.
func (d *deployment) elsewhere(organization string) string {
	if d.of[organization] == "b" {
		return "c"
	}
	return "b"
}

func (d *deployment) key(organization string) (id, key string) {
	d.Helper()
	return createKey(d.T, d.flags, "--org", organization)
}

// signal sends a signal to the engine of a cell.
func (d *deployment) signal(cell string, signal syscall.Signal) {
	d.Helper()
	pid := enginePID(d.dirs[cell])
	if pid == 0 {
		d.Fatalf("the cell %s has no engine", cell)
	}
	must(d, syscall.Kill(pid, signal))
}

const countRuns = `{"model":"agent_runs","metrics":["run_count"],` +
	`"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`

// expectRuns expects an answer with a number of runs.
func (d *deployment) expectRuns(base, key string, want int) {
	d.Helper()
	if status, body := post(d.T, base, key, countRuns); status != 200 ||
		!strings.Contains(body, fmt.Sprintf(`"rows":[[%d]]`, want)) {
		d.Errorf("%d %s, want %d runs", status, body, want)
	}
}

// Each record is in the cell of its organization and nowhere else, and commands and answers are those of one store.
func TestCells(t *testing.T) {
	d := inThreeCells(t)
	_, list := d.run("", "cells", "list")
	if !strings.Contains(list, "a     86     33.6 %  open") || strings.Count(list, "85     33.2 %  open") != 2 {
		t.Errorf("the cells are\n%s", list)
	}
	first := d.organizations()[0]
	if _, out := d.run("", "cells", "of", first); out != d.of[first]+"\n" {
		t.Errorf("%s is in %q, want %s", first, out, d.of[first])
	}
	lines, runs := d.records()
	if _, out := d.run(lines, "ingest", "-"); !strings.HasPrefix(out, "read 21, stored: agents 0, runs 21,") {
		t.Error(out)
	}
	for cell, store := range d.cells {
		var got, want []string
		if err := store.Conn().QueryRow(t.Context(), "SELECT groupArray(DISTINCT organization_id) FROM runs").
			Scan(&got); err != nil {
			t.Fatal(err)
		}
		for organization, of := range d.of {
			if of == cell {
				want = append(want, organization)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("in %s are %v, want %v", cell, got, want)
		}
	}
	file := d.file("records.ndjson", lines)
	if _, out := d.run("", "verify", file); strings.Count(out, "the store holds exactly what the source holds") != 3 {
		t.Error(out)
	}
	base, _, stop := started(t, d.flags...)
	keys := map[string]string{}
	for _, organization := range d.organizations() {
		var id string
		id, keys[organization] = d.key(organization)
		d.expectRuns(base, keys[organization], runs[organization])
		if _, out := d.run("", "keys", "list", "--org", organization); !strings.Contains(out, id) {
			t.Errorf("%s has the keys\n%s", organization, out)
		}
		if organization == first {
			d.run("", "keys", "revoke", id)
		}
	}
	d.run("", "conform", "--url", base, "--only", "pages")
	purged := d.organizations()[1]
	d.awaitUsage(purged) // else it might be written after the purge
	d.run("", "purge", "--org", purged, "--yes")
	_, audited := d.run("", "audit")
	if strings.Count(audited, "keys create") != 12 || strings.Count(audited, "keys revoke") != 2 {
		t.Error(audited)
	}
	for _, organization := range d.organizations()[2:] {
		d.expectRuns(base, keys[organization], runs[organization])
	}
	stop() // writes usage
	if _, out := d.run("", "usage", "--output", "csv"); strings.Count(out, "\norg-") < 5 {
		// A sixth one is the purged one's, if its last usage was written after the purge.
		t.Errorf("usage of five organizations, after a purge:\n%s", out)
	}
	if _, out := d.run("", "migrate", "status"); strings.Count(out, "(current)") != 3 {
		t.Error(out)
	}

	// A part of the organizations is never taken for all of them, nor one cell for another.
	alone := []string{"verify", "--data-dir", d.dirs["a"], "--engine-lib", clickhousetest.Library(), file}
	if code, _, stderr := command(t, "", alone...); code != exitFailed ||
		!strings.Contains(stderr, "is the cell a of several") {
		t.Errorf("a cell alone: %d %s", code, stderr)
	}
	exchanged := strings.NewReplacer("data_dir: a", "data_dir: b", "data_dir: b", "data_dir: a").Replace(cellsFile)
	wrong := []string{"cells", "list", "--cells", d.file("exchanged.yaml", exchanged), "--engine-lib",
		clickhousetest.Library()}
	if code, out, _ := command(t, "", wrong...); code != exitFailed || !strings.Contains(out, "is the cell b: check") {
		t.Errorf("exchanged cells: %d\n%s", code, out)
	}
	d.add()
}

// A cell that is frozen costs its own organizations their answers, and nobody else anything: not of a server that was
// started before, nor of one that is started meanwhile, which opens it when it goes on.
func TestACellThatIsAway(t *testing.T) {
	d := inThreeCells(t)
	lines, runs := d.records()
	d.run(lines, "ingest", "-")
	before, _, _ := started(t, append(d.flags, "--query-timeout", "10s")...)
	keys := map[string]string{}
	for _, organization := range d.organizations() {
		_, keys[organization] = d.key(organization)
		d.expectRuns(before, keys[organization], runs[organization])
	}
	d.signal("c", syscall.SIGSTOP)
	goesOn := false
	defer func() {
		if !goesOn {
			d.signal("c", syscall.SIGCONT)
		}
	}()
	since, admin, _ := started(t, append(d.flags, "--query-timeout", "10s")...)
	unknown, _ := auth.NewKey()
	for _, base := range []string{before, since} {
		for _, organization := range d.organizations() {
			if d.of[organization] != "c" {
				d.expectRuns(base, keys[organization], runs[organization])
			} else if status, body := post(t, base, keys[organization], countRuns); status != 500 && status != 429 {
				t.Errorf("of the cell that is away: %d %s", status, body)
			}
		}
		if status, body := post(t, base, unknown, countRuns); status != 500 && status != 429 {
			t.Errorf("a key that no other cell has: %d %s", status, body)
		}
	}
	if status, body := get(t, admin+"/readyz", ""); status != 200 {
		t.Errorf("readyz: %d %s", status, body)
	}
	if _, body := get(t, admin+"/metrics", ""); !strings.Contains(body, `runlens_cell_up{cell="c"} 0`) ||
		!strings.Contains(body, `runlens_cell_up{cell="a"} 1`) {
		t.Error("the metrics do not say which cell is away")
	}
	d.signal("c", syscall.SIGCONT)
	goesOn = true
	for _, organization := range d.organizations() {
		harness.Poll(t.Context(), time.Minute, 100*time.Millisecond, func() bool {
			status, _ := post(t, since, keys[organization], countRuns)
			return status == 200
		})
		d.expectRuns(since, keys[organization], runs[organization])
	}
	if status, _ := post(t, since, unknown, countRuns); status != 401 {
		t.Errorf("an unknown key: %d", status)
	}
}
