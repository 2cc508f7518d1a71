package schema

import "strings"

// What a backup has, in two parts. What is missing is derived (Derived, the rollup log, the counters, the conflicts
// that a refresh finds), is of work in progress (purge_targets, replacements), or would be wrong after a restore: a
// checkpoint may be later than the records, so that workers and backfills copy everything again, which changes nothing
// that is there.
var (
	// BackupRecords are the tables of records, and of what was asked.
	BackupRecords = []string{TableAgents, TableRuns, TableAttributions, TableUsageLog}

	// BackupLists are the small tables of which the newest rows count, whatever records are restored: keys and their
	// revocations, secrets, who was purged, who did what, and which cell the store is.
	BackupLists = []string{TableAPIKeys, TableAPIKeyUses, TableSecrets, TablePurgedPeople, TableAuditLog, TablePlacement}
)

// BackupSQL is the statement that backs up tables of a database to a destination, such as "Disk('backups', 'monday')".
func BackupSQL(database, destination string, tables []string) string {
	return "BACKUP " + tablesOf(database, tables) + " TO " + destination
}

// RestoreSQL is the statement that restores tables from a backup. They exist, since migrations made them, and are
// empty. Those of the backup may be defined otherwise: an older binary made them, and what migrations have added since
// is not in all of them (decisions/granules.md).
func RestoreSQL(database, source string, tables []string) string {
	return "RESTORE " + tablesOf(database, tables) + " FROM " + source + " SETTINGS allow_different_table_def = true"
}

func tablesOf(database string, tables []string) string {
	return "TABLE " + database + "." + strings.Join(tables, ", TABLE "+database+".")
}
