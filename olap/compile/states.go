package compile

import (
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/schema"
)

// Most attribution records are written soon after their run was created. These bound the runs that are
// read by their creation before any is looked up by its id; no answer depends on them.
const (
	windowBefore = 3 * 24 * time.Hour // before the range's first instant
	windowAfter  = 24 * time.Hour     // after its last one

	// longRange is from where on it pays to read a range in several parts, each in the cheapest way; and all runs of the organization at once: to look for
	// those that are not near costs a second join, which must be cheaper than a join with all others.
	longRange = 100 * 24 * time.Hour
)

// runStates are the current states of the runs of the rows, and of other runs; with versions those of all stored versions instead. FINAL leaves
// one version of each, without a hash table of all of them. Where MergedParts are known, near runs have the states in those, to which newerStates are to be joined.
//
// Attribution records do not know when their run was created, and the ids are random, so that no order of the
// table helps to find thousands of them. Near runs are read as a range of the sorting key; only ids that are not
// among those are looked for in the whole organization, in run_hash, which is narrow. The greatest state is the
// newest version's, whatever its clock (schema.SupersededRuns). A run that both parts find, because it was stored in
// between, has the same state in both, or one that has just been replaced.
//
// share is a further condition on the hash ? of a run; empty for none.
func (w *printer) runStates(rows, share string, versions bool) string {
	final, whole := " FINAL", ""
	switch {
	case versions:
		final = ""
	case len(w.MergedParts) > 0:
		final, whole = "", "\n    AND _part IN "+w.mergedParts()
	}
	read := "SELECT run_id AS f_run_id, state AS run_state" +
		"\nFROM " + schema.TableRuns + final +
		"\nWHERE " + ofOrganization + "\n    AND " + schema.CurrentRunSQL + strings.Replace(share, "?", "run_hash", 1)
	if w.long() {
		return read
	}
	near := w.near()
	return read + "\n    AND " + near + whole + "\nUNION ALL\n" + w.statesOutside(rows, near)
}

// newerStates are the greatest states of the near runs in the other parts, where runStates has those of MergedParts. There are few of them; to merge
// them with the others by FINAL would take several times as long as to read those.
func (w *printer) newerStates() string {
	return "SELECT run_id AS f_run_id, max(state) AS newer_state" +
		"\nFROM " + schema.TableRuns +
		"\nWHERE " + ofOrganization + "\n    AND " + schema.CurrentRunSQL + "\n    AND " + w.near() + "\n    AND _part NOT IN " + w.mergedParts() +
		"\nGROUP BY run_id"
}

func (w *printer) mergedParts() string { return w.param("merged_parts", w.MergedParts) }

// state is SQL of the state of a row's run; with versions, of one of its versions.
func (w *printer) state(versions bool) string {
	if !versions && len(w.MergedParts) > 0 {
		return "greatest(run_state, newer_state)"
	}
	return "run_state"
}

// ofRun is SQL of a field of a row's run, of which state is the SQL.
func ofRun(f *catalog.Field, state string) string {
	return strings.Replace(f.SQL, "run_state", state, 1) + " AS f_" + f.Name
}

// near is the condition that a run was created around the range.
func (w *printer) near() string {
	start, last := Near(w.Query.Range)
	return "created_at >= " + w.instant("window_start_ms", start) +
		"\n    AND created_at <= " + w.instant("window_last_ms", last)
}

// Near are the first and the last instant at which a run was created that is near a range.
func Near(r daterange.Range) (start, last time.Time) {
	return clamp(r.StartUTC.Add(-windowBefore)), clamp(r.EndUTC.Add(windowAfter))
}

// statesOutside are the states of the rows' runs that are not near, and of runs that share a hash with one.
func (w *printer) statesOutside(rows, near string) string {
	wanted := "run_hash IN\n    (\n" + indent(indent(missing(rows, near, " FINAL"))) + "\n    )"
	if !w.OutsideSince.IsZero() {
		wanted = w.given()
	}
	return "SELECT run_id AS f_run_id, max(state) AS run_state" +
		"\nFROM " + schema.TableRuns +
		"\nWHERE " + ofOrganization +
		"\n    AND " + schema.CurrentRunSQL +
		"\n    AND " + wanted +
		"\nGROUP BY run_id"
}

// missing are the hashes of the rows' runs that are not near. A run whose created_at moved has rows near that do not count;
// only with final it is among those that are not near where it counts elsewhere.
func missing(rows, near, final string) string {
	return "SELECT " + hashOf("f_run_id") + " AS f_run_hash" +
		"\nFROM\n(\n" + indent(rows) + "\n) AS r" +
		"\nLEFT ANTI JOIN\n(\n" +
		indent("SELECT run_id AS f_run_id\nFROM "+schema.TableRuns+final+"\nWHERE "+ofOrganization+"\n    AND "+schema.CurrentRunSQL+"\n    AND "+near) +
		"\n) AS n USING (f_run_id)"
}

// given is the condition that a run is one of those that come with the statement, or of a record that was stored since. Nearly all runs of
// the organization are none: half of their hash, for which ClickHouse has a table without collisions, rules most of them out, in a
// third of the time. (Were 0 among the hashes, all runs would be found: more than needed, and never wrong.)
func (w *printer) given() string {
	hashes := "SELECT run_hash\nFROM " + schema.TableRunsOutside + "\nUNION ALL\nSELECT " + hashOf("run_id") +
		"\nFROM " + w.source.Table + "\nWHERE " + strings.Join(append(w.inRange(), "first_stored_at > "+w.instant("outside_ms", w.OutsideSince)), "\n    AND ")
	return "if(toUInt16(run_hash) IN\n    (\n" + indent(indent("SELECT toUInt16(run_hash)\nFROM\n(\n"+indent(hashes)+"\n)")) + "\n    ), run_hash, 0) IN" +
		"\n    (\n" + indent(indent(hashes)) + "\n    )"
}

// RunsOutside returns the statement that reads the hashes, most at most, of all runs of the records in the query's range that are
// not near: whichever of them a statement selects, and whatever is stored later, those runs are not among others of theirs. That, and
// MergedParts, is for organizations no run of which has moved (schema.TableConflicts).
func RunsOutside(in Input, most int) Statement {
	w := &printer{planned: plan(in)}
	w.param("organization", string(w.Organization))
	rows := "SELECT run_id AS f_run_id\nFROM " + w.source.Table + "\nWHERE " + strings.Join(w.inRange(), "\n    AND ")
	sql := "SELECT DISTINCT toUInt64(f_run_hash) AS c0\nFROM\n(\n" + indent(missing(rows, w.near(), "")) + "\n)\nLIMIT " + w.param("limit", int64(most))
	return Statement{SQL: sql, Params: w.params, Columns: []Column{{Name: "run_hash", Kind: Count}}}
}

func hashOf(id string) string { return strings.Replace(schema.RunHashSQL, "?", id, 1) }
