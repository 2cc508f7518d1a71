package compile

import (
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/schema"
)

// Most attribution records are written soon after their run was created. The join window is the range and this much
// around it: runs in it are read by their clock, others are looked up by a hash of their id. No answer depends on it.
const (
	windowBefore = 3 * 24 * time.Hour // before the range's first instant
	windowAfter  = 24 * time.Hour     // after its last one
)

// JoinWindow are the first and the last instant, both inclusive, of the join window of a range.
func JoinWindow(r daterange.Range) (start, last time.Time) {
	return clamp(r.StartUTC.Add(-windowBefore)), clamp(r.EndUTC.Add(windowAfter))
}

// joined are the rows with the states of their runs; with AllVersions, once for every stored version. bucket is a
// further condition on the hash ? of a run, of the rows and of the runs; empty for none.
func (w *printer) joined(bucket string) string {
	rows := w.rows(bucket)
	sql := "(\n" + indent(rows) + "\n) AS r"
	join := func(kind, states, name string) {
		sql += "\n" + kind + " JOIN\n(\n" + indent(states) + "\n) AS " + name + " USING (f_run_id)"
	}
	states := w.runStates(rows, bucket)
	if w.AllVersions {
		join("LEFT", states, "s")
		return sql
	}
	join("ANY LEFT", states, "s")
	if len(w.MergedParts) > 0 {
		join("ANY LEFT", w.newerStates(), "v")
	}
	return sql
}

// rows are single records. bucket is as in joined.
func (w *printer) rows(bucket string) string { return selectFrom(nil, w.fields(), w.table(bucket)) }

// runStates are the current states of the runs of the rows, and of other runs; with AllVersions those of all stored
// versions instead. FINAL leaves one version of each, without a hash table of all of them. With MergedParts, runs in
// the join window have the states in those, to which newerStates are to be joined.
//
// Attribution records do not have the created_at of their run, and ids are random, so that no order of the table helps
// to find thousands of them. Runs in the join window are read as a range of the sorting key; only ids that are not
// among those are looked up in the whole organization, by run_hash, which is narrow. The greatest state is the newest
// version's, whatever its clock (schema.SupersededRuns). A run that both parts find, because it was stored in between,
// has the same state in both, or one that has just been replaced.
//
// bucket is a further condition on the hash ? of a run; empty for none.
func (w *printer) runStates(rows, bucket string) string {
	final, merged := " FINAL", ""
	switch {
	case w.AllVersions:
		final = ""
	case len(w.MergedParts) > 0:
		final, merged = "", "\n    AND _part IN "+w.mergedParts()
	}
	read := "SELECT run_id AS f_run_id, state AS run_state" +
		"\nFROM " + schema.TableRuns + final +
		"\nWHERE " + schema.OfOrganization + "\n    AND " + schema.CurrentRunSQL + strings.Replace(bucket, "?", "run_hash", 1)
	if !w.Window {
		return read
	}
	window := w.inWindow()
	return read + "\n    AND " + window + merged + "\nUNION ALL\n" + w.statesOutside(rows, window)
}

// newerStates are the greatest states of the runs in the join window in the other parts, where runStates has those of
// MergedParts. There are few of them; to merge them with the others by FINAL would take several times as long.
func (w *printer) newerStates() string {
	return "SELECT run_id AS f_run_id, max(state) AS newer_state" +
		"\nFROM " + schema.TableRuns +
		"\nWHERE " + schema.OfOrganization + "\n    AND " + schema.CurrentRunSQL + "\n    AND " + w.inWindow() +
		"\n    AND _part NOT IN " + w.mergedParts() +
		"\nGROUP BY run_id"
}

func (w *printer) mergedParts() string { return w.param("merged_parts", w.MergedParts) }

// state is SQL of the state of a row's run; with AllVersions, of one of its versions.
func (w *printer) state() string {
	if !w.AllVersions && len(w.MergedParts) > 0 {
		return "greatest(run_state, newer_state)"
	}
	return "run_state"
}

// ofRun is SQL of a field of a row's run, of which state is the SQL.
func ofRun(f *catalog.Field, state string) string {
	return strings.Replace(f.SQL, "run_state", state, 1) + " AS f_" + f.Name
}

// inWindow is the condition that a run was created in the join window.
func (w *printer) inWindow() string {
	start, last := JoinWindow(w.Query.Range)
	return "created_at >= " + instant(start) +
		"\n    AND created_at <= " + instant(last)
}

// statesOutside are the states of the rows' runs outside the join window, and of runs that share a hash with one.
func (w *printer) statesOutside(rows, window string) string {
	wanted := "run_hash IN\n    (\n" + indent(indent(outside(rows, window, " FINAL"))) + "\n    )"
	if !w.OutsideSince.IsZero() {
		wanted = w.sentOrStoredSince()
	}
	return "SELECT run_id AS f_run_id, max(state) AS run_state" +
		"\nFROM " + schema.TableRuns +
		"\nWHERE " + schema.OfOrganization +
		"\n    AND " + schema.CurrentRunSQL +
		"\n    AND " + wanted +
		"\nGROUP BY run_id"
}

// outside are the hashes of the rows' runs outside the join window. A run whose created_at moved has rows in the window
// that do not count; only with final it is outside where it counts elsewhere.
func outside(rows, window, final string) string {
	return "SELECT " + hashOf("f_run_id") + " AS f_run_hash" +
		"\nFROM\n(\n" + indent(rows) + "\n) AS r" +
		"\nLEFT ANTI JOIN\n(\n" +
		indent("SELECT run_id AS f_run_id\nFROM "+schema.TableRuns+final+"\nWHERE "+schema.OfOrganization+
			"\n    AND "+schema.CurrentRunSQL+"\n    AND "+window) +
		"\n) AS n USING (f_run_id)"
}

// sentOrStoredSince is the condition that a run is one of those sent with the statement, or of a record that was stored
// since. Nearly all runs of the organization are neither: half of their hash, for which ClickHouse has a table without
// collisions, excludes most of them, in a third of the time. (Were 0 among the hashes, all runs would be found: more
// than needed, and never wrong.)
func (w *printer) sentOrStoredSince() string {
	since := append(w.inRange(), "first_stored_at > "+instant(w.OutsideSince))
	hashes := "SELECT run_hash\nFROM " + schema.TableRunsOutside + "\nUNION ALL\nSELECT " + hashOf("run_id") +
		"\nFROM " + w.Source.Table + "\nWHERE " + strings.Join(since, "\n    AND ")
	return "if(toUInt16(run_hash) IN\n    (\n" +
		indent(indent("SELECT toUInt16(run_hash)\nFROM\n(\n"+indent(hashes)+"\n)")) +
		"\n    ), run_hash, 0) IN" +
		"\n    (\n" + indent(indent(hashes)) + "\n    )"
}

// RunsOutside returns the statement that reads the hashes, most at most, of all runs of the records in the query's
// range that are outside the join window. Whichever records a statement selects, and whatever is stored later, their
// runs outside the window are among those. That, and MergedParts, is for organizations no run of which has moved
// (schema.TableConflicts).
func RunsOutside(in Input, most int) Statement {
	w := &printer{Input: in}
	w.param("organization", string(w.Organization))
	rows := "SELECT run_id AS f_run_id\nFROM " + w.Source.Table + "\nWHERE " + strings.Join(w.inRange(), "\n    AND ")
	sql := "SELECT DISTINCT toUInt64(f_run_hash) AS c0\nFROM\n(\n" + indent(outside(rows, w.inWindow(), "")) + "\n)" +
		"\nLIMIT " + number(int64(most))
	return Statement{SQL: sql, Params: w.params, Columns: []Column{{Name: "run_hash", Kind: Count}}}
}
