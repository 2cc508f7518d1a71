package compile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const millisPerDay = 24 * 60 * 60 * 1000

// The instants a DateTime64(3) column can hold; range borders outside are moved to them, which
// changes no answer because no row lies outside either (contract 3).
var (
	earliestClock = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latestClock   = time.Date(2299, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

// enoughPeople is the condition that a group has as many people as it must have to be in the answer; empty for none.
func (w *printer) enoughPeople() string {
	if w.Query.MinPeople == 0 {
		return ""
	}
	return "m_" + w.Query.Model.People.Name + " >= " + number(int64(w.Query.MinPeople))
}

// aggregates are what is computed of the rows of a group: companions as n_<name>, metrics as m_<name>, and for ownClock
// when its newest row was first stored.
func (w *printer) aggregates() (named []string) {
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// The group without an identifier has no name either (contract 4.15).
				named = append(named, fmt.Sprintf("if(isNull(%s), NULL, max(f_%s)) AS n_%s", keyOf(d), c.Field, c.Name))
			}
		}
	}
	for _, m := range w.Aggregates {
		named = append(named, m.Aggregate+" AS m_"+m.Name)
	}
	if w.AsOf.IsZero() {
		named = append(named, "max("+storedAt+") AS "+newestStored)
	}
	return named
}

// records are single rows, with the SQL of their fields as f_<name> and no columns yet: of the table, or with the
// states of their runs where those are needed.
func (w *printer) records() sql.Select {
	if len(w.RunFields) == 0 {
		s := w.table()
		s.With = w.fields()
		return s
	}
	s := w.joined()
	for _, f := range w.RunFields {
		s.With = append(s.With, ofRun(f, "run_state"))
	}
	return s
}

// fields are the fields of a row of the model's own table.
func (w *printer) fields() (named []string) {
	for _, f := range w.Fields {
		named = append(named, f.SQL+" AS f_"+f.Name)
	}
	if w.Day {
		named = append(named, w.localDay(w.clockMillis())+" AS f_day")
	}
	if w.AsOf.IsZero() {
		named = append(named, "first_stored_at AS "+storedAt)
	}
	return named
}

// table is the model's table with the conditions on its rows: of this organization, in the range, known at asOf, kept
// by the filters, and after the cursor.
func (w *printer) table() sql.Select {
	conditions := w.inTimes()
	if !w.AsOf.IsZero() {
		conditions = append(conditions, "first_stored_at <= "+instant(w.AsOf))
	}
	if w.Source.Predicate != "" {
		conditions = append(conditions, w.Source.Predicate)
	}
	conditions = slices.Concat(conditions, w.counted(), w.kept())
	if w.HashBuckets > 1 {
		conditions = append(conditions, w.inBucket(schema.IDHashSQL("run_id")))
	}
	return sql.Select{From: sql.Table(w.Source.Table).Final(w.Final), Where: conditions}
}

// inBucket is the condition that a hash, given as SQL, is in the bucket that is counted. A set of 16 bits is a table
// without collisions.
func (w *printer) inBucket(hash string) string {
	return fmt.Sprintf("toUInt16(%s %% %d) IN", hash, w.HashBuckets) +
		sql.In(sql.Select{Columns: []string{"bucket"}, From: sql.Sent(hashBuckets)})
}

// keys are what is grouped by.
func (w *printer) keys() (keys []string) {
	for _, d := range w.Query.Dimensions {
		keys = append(keys, keyOf(d))
	}
	return keys
}

func keyOf(d *catalog.Dimension) string {
	if d.Kind == catalog.Day {
		return "f_day"
	}
	return "f_" + d.Field
}

// shown is the SQL of a dimension's text over its key.
func shown(d *catalog.Dimension, key string) string {
	if d.Show == "" {
		return key
	}
	return strings.Replace(d.Show, "?", key, 1)
}

// counted is the condition that no other clock of a record counts instead, where records have conflicts.
func (w *printer) counted() []string {
	if !w.Conflicts || w.Source.Mutable {
		return nil
	}
	return []string{w.Source.Rollup.CountsOfOrganization()}
}

// kept are the conditions over what is grouped by: the filters, and to come after the cursor, unless that is only known
// when initiator keys have their texts.
func (w *printer) kept() []string {
	var conditions []string
	for i, filter := range w.Query.Filters {
		conditions = append(conditions, w.filter(fmt.Sprintf("filter_%d", i), filter))
	}
	if w.After != nil && !w.byPerson() {
		conditions = append(conditions, w.afterCursor())
	}
	return conditions
}

// inTimes are the conditions that a row lies in the range.
func (w *printer) inTimes() []string {
	start, last := w.ends()
	conditions := []string{
		w.Source.ClockColumn + " >= " + instant(clamp(start)),
		w.Source.ClockColumn + " <= " + instant(clamp(last)),
	}
	if last.Before(earliestClock) || start.After(latestClock) {
		conditions = append(conditions, "false")
	}
	return conditions
}

// ends are the first and the last instant of the range. The range's end is exclusive, so that moving it to the
// last instant a column can hold would lose that one: hence the millisecond before.
func (in Input) ends() (start, last time.Time) {
	return in.Query.Range.StartUTC, in.Query.Range.EndUTC.Add(-time.Millisecond)
}

func clamp(t time.Time) time.Time {
	if t.Before(earliestClock) {
		return earliestClock
	}
	if t.After(latestClock) {
		return latestClock
	}
	return t
}

// ownClock is the boundary that a statement reports where asOf is not set before: the rows that it reads have no
// condition then, and the boundary is not before any of them. ClickHouse takes the snapshot of the table when it
// analyses the statement, and reads this clock for each block of results, which is later. So whatever was acknowledged
// before the statement was sent is in the answer, and whatever its clock could have stamped is not after the boundary.
// Another node's clock may be ahead of it, and it may have been set back: hence the newest stamp of the rows
// themselves.
const (
	ownClock = "greatest(toUnixTimestamp64Milli(nowInBlock64(3)), toUnixTimestamp64Milli(" + newestStored + "))" +
		" AS as_of_ms"

	newestStored = "m_first_stored_at"
	storedAt     = "f_first_stored_at"
)

// clockMillis is the event clock of a row in milliseconds since 1970.
func (w *printer) clockMillis() string {
	return "toUnixTimestamp64Milli(" + w.Source.ClockColumn + ")"
}

// localDay is the local day of an instant, given as SQL in milliseconds, counted from FirstDay: the wall clock's day,
// from the same offsets as the range's instants.
func (w *printer) localDay(clock string) string {
	offsets := w.Query.Range.Offsets
	last := len(offsets) - 1
	shift := func(o daterange.Offset) string { return number(o.Millis - FirstDay*millisPerDay) }
	shifts := shift(offsets[last])
	if last > 0 {
		var cases []string
		for _, o := range offsets[:last] {
			cases = append(cases, clock+" < "+number(o.UntilUTC.UnixMilli()), shift(o))
		}
		shifts = "multiIf(" + strings.Join(cases, ", ") + ", " + shifts + ")"
	}
	return fmt.Sprintf("intDiv(%s + %s, %d)", clock, shifts, millisPerDay)
}

func instant(t time.Time) string {
	return "fromUnixTimestamp64Milli(" + number(t.UnixMilli()) + ", 'UTC')"
}

// number is the SQL of a number that runlens computed. ClickHouse takes a sixth less time for a small query whose
// numbers stand in the text than for one with parameters.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// param adds a parameter and returns its placeholder. Whatever a caller wrote is one, and lists, whose length callers
// choose.
func (w *printer) param(name string, value any) string {
	if !slices.ContainsFunc(w.params, func(p Param) bool { return p.Name == name }) {
		w.params = append(w.params, Param{name, value})
	}
	switch value.(type) {
	case []int64:
		return "{" + name + ":Array(Int64)}"
	case []string:
		return "{" + name + ":Array(String)}"
	default:
		return "{" + name + ":String}"
	}
}
