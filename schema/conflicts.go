package schema

import (
	"slices"

	"github.com/runlens/runlens/schema/sql"
)

// What happens where a source changes what should never change (contract 4.20). DESIGN.md and
// decisions/moved-records.md give the reasons.

// supersededLow are the bits of runs.state below the status in a superseded mark: kind 7 and initiator type 7, which no
// record has.
const supersededLow = "63"

const (
	// CurrentRunSQL is the condition over a row of runs that it is no superseded mark. Of a row that FINAL made it says
	// that the run counts under this clock.
	CurrentRunSQL = "bitAnd(state, " + supersededLow + ") != " + supersededLow

	// contentSQL is the lower half of attributions.inverted_timestamp: 64 bits of everything that a record says besides
	// its key.
	contentSQL     = "bitAnd(inverted_timestamp, 18446744073709551615)"
	contentsDiffer = "min(" + contentSQL + ") != max(" + contentSQL + ")"
)

// The kinds of TableConflicts.
const (
	ConflictRun         = "run"         // stored under several clocks
	ConflictAttribution = "attribution" // stored with several contents or under several clocks
)

// SupersededAttributions selects columns of the keys (organization_id, clock and id) of the attribution records that do
// not count, because the record was stored earlier under another clock. Copies under one clock are not among them:
// FINAL leaves the one stored first.
func SupersededAttributions(read sql.Reader, columns []string, conditions ...string) sql.Select {
	return sql.Select{
		Columns: columns, From: read(TableConflicts), Where: append([]string{ofAttribution, "superseded"}, conditions...),
	}
}

const ofAttribution = "kind = '" + ConflictAttribution + "'"

// Among are the records of which conflicts are looked for: those of which a row satisfies the condition Stored, and
// with All the others of their organizations too, which takes less time where those are few.
type Among struct {
	Stored string
	All    bool
}

// SupersededRuns selects the marks that runs needs: organization_id, created_at, run_id and state.
//
// Of the clocks of a run the one counts whose greatest state has the greatest version and status; of several with the
// same, the latest. So the status of a run is that of the greatest state of all of its rows without marks, which needs
// no clock. The mark of any other clock is greater than all states there that lose against the winner, and less than
// all that would win: it has the version and status of the winner, less one where its own clock is later, and
// supersededLow. Therefore the order of arrival decides nothing, and a version that wins under a marked clock makes
// that clock count again by itself.
func SupersededRuns(read sql.Reader, of Among) sql.Select {
	rows := sql.Select{
		Columns: []string{"organization_id", "run_id", "created_at AS clock", "max(state) AS top"},
		From:    read(TableRuns),
		Where: candidates(read, TableRuns, "run_hash", "run_id", of,
			"min(created_at) != max(created_at)"),
		Group: []string{"organization_id", "run_id", "created_at"},
	}
	runs := sql.Select{
		Columns: []string{"organization_id", "run_id", "groupArray((clock, top)) AS stored_keys",
			"maxIf((bitShiftRight(top, 6), clock), bitAnd(top, " + supersededLow + ") != " + supersededLow + ") AS winner"},
		From: sql.Query(rows), Group: []string{"organization_id", "run_id"}, Having: "count() > 1",
	}
	return sql.Select{
		Columns: []string{"organization_id", "tupleElement(stored_key, 1) AS created_at", "run_id",
			"bitOr(bitShiftLeft(toUInt64(tupleElement(winner, 1) - (tupleElement(stored_key, 1) > tupleElement(winner, 2)))," +
				" 6), " + supersededLow + ") AS state"},
		From: sql.Query(runs), Array: "stored_keys AS stored_key",
		Where: []string{"bitAnd(tupleElement(stored_key, 2), " + supersededLow + ") != " + supersededLow,
			"tupleElement(stored_key, 1) != tupleElement(winner, 2)"},
	}
}

// SeveralAttributions selects the attribution records that were stored under several clocks, or with several contents
// under one: organization_id, attribution_id, stored_keys (each clock, and whether contents differ there) and winner
// (what decides, and the clock that counts).
func SeveralAttributions(read sql.Reader, of Among) sql.Select {
	rows := sql.Select{
		Columns: []string{"organization_id", "attribution_id", "occurred_at AS occurred", "max(inverted_timestamp) AS top",
			contentsDiffer + " AS differs"},
		From: read(TableAttributions),
		Where: candidates(read, TableAttributions, "attribution_hash", "attribution_id", of,
			"min(occurred_at) != max(occurred_at) OR "+contentsDiffer),
		Group: []string{"organization_id", "attribution_id", "occurred_at"},
	}
	return sql.Select{
		Columns: []string{"organization_id", "attribution_id", "groupArray((occurred, differs)) AS stored_keys",
			"max((top, occurred)) AS winner"},
		From: sql.Query(rows), Group: []string{"organization_id", "attribution_id"},
		Having: "count() > 1 OR max(differs)",
	}
}

// CountingAttributions selects the clock that counts of each of SeveralAttributions: organization_id, clock and id.
func CountingAttributions(read sql.Reader, stored string) sql.Select {
	return sql.Select{
		Columns: []string{"organization_id", "tupleElement(winner, 2) AS clock", "attribution_id AS id"},
		From:    sql.Query(SeveralAttributions(read, Among{Stored: stored})),
	}
}

// ConflictingAttributions selects what TableConflicts lacks of the attribution records of which a row satisfies the
// condition stored: organization_id, id, clock and superseded. Of the clocks of a record the one counts under which it
// was stored first; of several in one millisecond the greatest content decides, then the latest clock.
func ConflictingAttributions(read sql.Reader, stored string) sql.Select {
	known := sql.Select{
		Columns: []string{"organization_id", "id", "clock", "superseded"}, From: read(TableConflicts),
		Where: []string{ofAttribution},
	}
	return sql.Select{
		Columns: []string{"organization_id", "attribution_id AS id", "tupleElement(stored_key, 1) AS clock",
			"tupleElement(stored_key, 1) != tupleElement(winner, 2) AS superseded"},
		From: sql.Query(SeveralAttributions(read, Among{Stored: stored})), Array: "stored_keys AS stored_key",
		Where: []string{"(superseded OR tupleElement(stored_key, 2))",
			"(organization_id, id, clock, superseded) NOT IN" + sql.In(known)},
	}
}

// ReversedAttributions selects the clocks of attribution records, among those of which a row satisfies the condition
// stored, that count although TableConflicts says otherwise, or don't although the rollup has them: organization_id,
// clock and id. The order in which copies were stored is that of their stamps. It changes where the store's clock was
// set back, and a copy stored after that has an earlier stamp than one that was refreshed before.
func ReversedAttributions(read sql.Reader, stored string) sql.Select {
	keys := []string{"organization_id", "clock", "id"}
	superseded := ConflictingAttributions(read, stored)
	superseded.Where = append(superseded.Where, "superseded")
	rollup := RollupOf(TableAttributions)
	counted := sql.Select{
		Columns: rollup.RecordKey(), From: read(rollup.Table),
		Where: []string{"(organization_id, occurred_at) IN" + sql.In(sql.Select{
			Columns: keys[:2], From: sql.Query(superseded),
		})},
		Group: rollup.RecordKey(), Having: "sum(sign) > 0",
	}
	counting := CountingAttributions(read, stored)
	counting.Where = []string{"(organization_id, clock, id) IN" + sql.In(SupersededAttributions(read, keys))}
	return sql.Select{Columns: keys, From: sql.Query(sql.Union{
		counting,
		{
			Columns: keys, From: sql.Query(superseded), Where: []string{"(organization_id, clock, id) IN" + sql.In(counted)},
		},
	})}
}

// SupersededAmong is the condition that a row of TableConflicts says of one of some clocks, which a query selects by
// organization_id, clock and id, that it does not count.
func SupersededAmong(clocks sql.Select) string {
	return sql.All(ofAttribution, "superseded", "(organization_id, clock, id) IN"+sql.In(clocks))
}

// WronglySuperseded selects, of the attribution records none of whose clocks counts, the one that should:
// organization_id, clock and id. That happens where the rows of the clock that did were taken out of the store. The
// conditions are over organization_id.
func WronglySuperseded(read sql.Reader, conditions ...string) sql.Select {
	superseded := func(columns ...string) string {
		return sql.In(SupersededAttributions(read, columns, conditions...))
	}
	return sql.Select{
		Columns: []string{"organization_id", "argMax(occurred_at, (inverted_timestamp, occurred_at)) AS clock",
			"attribution_id AS id"},
		From: read(TableAttributions),
		Where: append(slices.Clone(conditions),
			"attribution_hash IN"+superseded(IDHashSQL("id")),
			"(organization_id, attribution_id) IN"+superseded("organization_id", "id")),
		Group: []string{"organization_id", "attribution_id"},
		Having: "countIf((organization_id, occurred_at, attribution_id) NOT IN" +
			superseded("organization_id", "clock", "id") + ") = 0",
	}
}

// candidates are the conditions that a row of a table is of a record among some and has rows that differ, an aggregate
// condition, or of another one whose id has the same hash. Only the narrow columns are read of all rows.
func candidates(read sql.Reader, table, column, id string, of Among, differ string) []string {
	in := func(selected string) string {
		return " IN" + sql.In(sql.Select{Columns: []string{selected}, From: read(table), Where: []string{of.Stored}})
	}
	ofOrganizations := "organization_id" + in("organization_id")
	// One number to group by takes half of the time that two columns take.
	hashes := sql.Select{
		Columns: []string{"toUInt32(of_id)"}, From: read(table), Where: []string{ofOrganizations},
		Group:  []string{"bitOr(bitShiftLeft(cityHash64(organization_id), 32), " + column + ") AS of_id"},
		Having: differ,
	}
	if !of.All {
		hashes.Where = append(hashes.Where, hashAmong(column, id, in))
	}
	return []string{ofOrganizations, column + " IN" + sql.In(hashes)}
}
