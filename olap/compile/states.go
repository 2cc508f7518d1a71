package compile

import (
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// Most attribution records are written soon after their run was created. The join window is the range and this much
// around it: runs in it are read by their clock, others are looked up by a hash of their id. No answer depends on it.
const (
	windowBefore = 3 * 24 * time.Hour // before the range's first instant
	windowAfter  = 24 * time.Hour     // after its last one
)

// joined are the rows with the states of their runs; with AllVersions, once for every stored version. bucket is a
// further condition on the hash ? of a run, of the rows and of the runs; empty for none.
func (w *printer) joined(bucket string) string {
	rows := w.rows(bucket)
	kind := "ANY LEFT"
	if w.AllVersions {
		kind = "LEFT"
	}
	return "(\n" + indent(rows) + "\n) AS r\n" + kind + " JOIN\n(\n" + indent(w.runStates(rows, bucket)) +
		"\n) AS s USING (f_run_id)"
}

// rows are single records. bucket is as in joined.
func (w *printer) rows(bucket string) string { return selectFrom(nil, w.fields(), w.table(bucket)) }

// runStates are the current states of the runs of the rows, and of other runs; with AllVersions those of all stored
// versions instead. FINAL leaves one version of each, without a hash table of all of them.
//
// Attribution records do not have the created_at of their run, and ids are random, so that no order of the table helps
// to find thousands of them. Runs in the join window are read as a range of the sorting key; only ids that are not
// among those are looked up in the whole organization, by run_hash, which is narrow. The greatest state is the newest
// version's, whatever its clock (schema.SupersededRuns). A run that both parts find, because it was stored in between,
// has the same state in both, or one that has just been replaced.
//
// bucket is a further condition on the hash ? of a run; empty for none.
func (w *printer) runStates(rows, bucket string) string {
	final := " FINAL"
	if w.AllVersions {
		final = ""
	}
	read := "SELECT run_id AS f_run_id, state AS run_state" +
		"\nFROM " + schema.TableRuns + final +
		"\nWHERE " + schema.OfOrganization + "\n    AND " + schema.CurrentRunSQL + strings.Replace(bucket, "?", "run_hash", 1)
	if !w.Window {
		return read
	}
	window := w.inWindow()
	return read + "\n    AND " + window + "\nUNION ALL\n" + statesOutside(rows, window)
}

// ofRun is SQL of a field of a row's run, of which state is the SQL.
func ofRun(f *catalog.Field, state string) string {
	return strings.Replace(f.SQL, "run_state", state, 1) + " AS f_" + f.Name
}

// inWindow is the condition that a run was created in the join window.
func (w *printer) inWindow() string {
	r := w.Query.Range
	return "created_at >= " + instant(clamp(r.StartUTC.Add(-windowBefore))) +
		"\n    AND created_at <= " + instant(clamp(r.EndUTC.Add(windowAfter)))
}

// statesOutside are the states of the rows' runs outside the join window, and of runs that share a hash with one. A run
// whose created_at moved has rows in the window that do not count; with FINAL it is outside where it counts elsewhere.
func statesOutside(rows, window string) string {
	outside := "SELECT " + hashOf("f_run_id") + " AS f_run_hash" +
		"\nFROM\n(\n" + indent(rows) + "\n) AS r" +
		"\nLEFT ANTI JOIN\n(\n" +
		indent("SELECT run_id AS f_run_id\nFROM "+schema.TableRuns+" FINAL\nWHERE "+schema.OfOrganization+
			"\n    AND "+schema.CurrentRunSQL+"\n    AND "+window) +
		"\n) AS n USING (f_run_id)"
	return "SELECT run_id AS f_run_id, max(state) AS run_state" +
		"\nFROM " + schema.TableRuns +
		"\nWHERE " + schema.OfOrganization +
		"\n    AND " + schema.CurrentRunSQL +
		"\n    AND run_hash IN\n    (\n" + indent(indent(outside)) + "\n    )" +
		"\nGROUP BY run_id"
}
