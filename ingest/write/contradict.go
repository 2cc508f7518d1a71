package write

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// contradictions are how many attribution records of each organization say something else than the copy that counts, so
// that they are stored with its content. Nothing of theirs is in the store, where a refresh would find it and log it.
type contradictions map[schema.OrganizationID]uint64

// keep gives a record the content of the copy that counts.
func (c contradictions) keep(record, counts *normalize.Attribution) {
	if !reflect.DeepEqual(record, counts) {
		c[record.OrganizationID]++
		*record = *counts
	}
}

// log says it as a refresh does.
func (c contradictions) log(logger *slog.Logger) {
	for _, organization := range slices.Sorted(maps.Keys(c)) {
		rollup.LogConflicts(logger, organization, schema.ConflictAttribution, c[organization])
	}
}
