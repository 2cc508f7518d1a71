package schema

import "github.com/runlens/runlens/schema/sql"

// TableLookedUp is the external table with the records that a statement looks up: organization_id, id, and of runs the
// clock.
const TableLookedUp = "looked_up"

// CountingAttributionRows selects, of each attribution record in TableLookedUp that is stored, the copy that counts:
// AttributionColumns.
func CountingAttributionRows(read sql.Reader) sql.Select {
	return sql.Select{
		Columns: AttributionColumns, From: read(TableAttributions),
		Where: lookedUp("attribution_hash", "attribution_id"),
		Order: []string{"inverted_timestamp DESC", "occurred_at DESC"}, Limit: "1 BY organization_id, attribution_id",
	}
}

// OrganizationsOfMovedRuns selects an array of the organizations with a run in TableLookedUp that counts, or may do so,
// under a clock that is not there.
func OrganizationsOfMovedRuns(read sql.Reader) sql.Select {
	known := sql.Select{Columns: []string{"organization_id", "id", "clock"}, From: sql.Sent(TableLookedUp)}
	others := sql.Select{
		Columns: []string{"organization_id"}, From: read(TableRuns),
		Where: append(lookedUp("run_hash", "run_id"), sql.NotIn(known, "organization_id", "run_id", "created_at")),
		Group: []string{"organization_id", "run_id", "created_at"},
		// A clock that is marked counts again only with a version that wins there.
		Having: "bitAnd(max(state), " + supersededLow + ") != " + supersededLow,
	}
	return sql.Select{Columns: []string{"groupUniqArray(toString(organization_id))"}, From: sql.Query(others)}
}

// lookedUp are the conditions that a row is of a record in TableLookedUp. Of all rows of its organization only the
// hashes of ids are read.
func lookedUp(hash, id string) []string {
	of := func(columns string) string {
		return " IN" + sql.In(sql.Select{Columns: []string{columns}, From: sql.Sent(TableLookedUp)})
	}
	return []string{
		"organization_id" + of("organization_id"),
		hashAmong(hash, "id", of),
		// identity: to search the index for ids as well takes longer than to test the few rows whose hash is there.
		"identity((organization_id, " + id + "))" + of("organization_id, id"),
	}
}

// hashAmong is the condition that a column with the hash of an id has that of one of the ids among which a query
// selects: among returns the operator and the query. Half of the hash, for which ClickHouse has a table without
// collisions, rules most rows out in a third of the time, where few ids are selected.
func hashAmong(column, id string, among func(selected string) string) string {
	hash := IDHashSQL(id)
	return "if(toUInt16(" + column + ")" + among("toUInt16("+hash+")") + ", " + column + ", 0)" + among(hash)
}
