package move

import (
	"slices"

	"github.com/runlens/runlens/schema"
)

// Tables are all tables of a store: those that a move copies, and those that it does not, with why.
func Tables() (names []string) {
	for _, t := range slices.Concat(records, lists, logs) {
		names = append(names, t.name)
	}
	return slices.Concat(names, schema.Derived(), []string{
		schema.TableRollupLog,      // of what is derived
		schema.TableInsertCounters, // counted by the copy as by any insert
		schema.TablePurgeTargets,   // a purge is made again, whole, where the organization is then
		schema.TableCheckpoints,    // copied under other names (copyCheckpoints)
		schema.TablePlacement,      // what moves are made with
		"schema_migrations", "schema_versions",
	})
}
