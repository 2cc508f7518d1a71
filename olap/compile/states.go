package compile

import (
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// Most attribution records are written soon after their run was created. The join window is the range and this much
// around it: runs in it are read by their clock, others are looked up by a hash of their id. No answer depends on it.
const (
	windowBefore = 3 * 24 * time.Hour // before the range's first instant
	windowAfter  = 24 * time.Hour     // after its last one
)

// joined are the rows with the states of their runs; with AllVersions, once for every stored version.
func (w *printer) joined() sql.Select {
	rows, kind := w.table(), "ANY LEFT"
	rows.Columns = w.fields()
	if w.AllVersions {
		kind = "LEFT"
	}
	return sql.Select{
		From:  sql.Query(rows).As("r"),
		Joins: []sql.Join{{Kind: kind, From: sql.Query(w.runStates(rows)).As("s"), On: "USING (f_run_id)"}},
	}
}

// runStates are the current states of the runs of the rows, and of other runs; with AllVersions those of all stored
// versions instead. FINAL leaves one version of each, without a hash table of all of them.
//
// Attribution records do not have the created_at of their run, and ids are random, so that no order of the table helps
// to find thousands of them. Runs in the join window are read as a range of the sorting key; only ids that are not
// among those are looked up in the whole organization, by run_hash, which is narrow. The greatest state is the newest
// version's, whatever its clock (schema.SupersededRuns). A run that both parts find, because it was stored in between,
// has the same state in both, or one that has just been replaced.
func (w *printer) runStates(rows sql.Select) sql.Union {
	read := sql.Select{
		Columns: []string{runID, "state AS run_state"}, From: sql.Table(schema.TableRuns).Final(!w.AllVersions),
		Where: []string{schema.CurrentRunSQL},
	}
	if w.HashBuckets > 1 {
		read.Where = append(read.Where, w.inBucket("run_hash"))
	}
	if !w.Window {
		return sql.Union{read}
	}
	read.Where = append(read.Where, w.inWindow()...)
	return sql.Union{read, w.statesOutside(rows)}
}

const runID = "run_id AS f_run_id"

// ofRun is SQL of a field of a row's run, of which state is the SQL.
func ofRun(f *catalog.Field, state string) string {
	return strings.Replace(f.SQL, "run_state", state, 1) + " AS f_" + f.Name
}

// inWindow are the conditions that a run was created in the join window.
func (w *printer) inWindow() []string {
	r := w.Query.Range
	return []string{
		"created_at >= " + instant(clamp(r.StartUTC.Add(-windowBefore))),
		"created_at <= " + instant(clamp(r.EndUTC.Add(windowAfter))),
	}
}

// statesOutside are the states of the rows' runs outside the join window, and of runs that share a hash with one. A run
// whose created_at moved has rows in the window that do not count; with FINAL it is outside where it counts elsewhere.
func (w *printer) statesOutside(rows sql.Select) sql.Select {
	inside := sql.Select{
		Columns: []string{"run_id"}, From: sql.Table(schema.TableRuns).Final(true),
		Where: append([]string{schema.CurrentRunSQL}, w.inWindow()...),
	}
	outside := sql.Select{
		Columns: []string{schema.IDHashSQL("f_run_id") + " AS f_run_hash"}, From: sql.Query(rows).As("r"),
		Where: []string{sql.NotIn(inside, "f_run_id")},
	}
	return sql.Select{
		Columns: []string{runID, "max(state) AS run_state"}, From: sql.Table(schema.TableRuns),
		Where: []string{schema.CurrentRunSQL, "run_hash IN" + sql.In(outside)}, Group: []string{"run_id"},
	}
}
