package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/snapshot"
)

// newestPurge returns when, by the store's clock, an organization was purged or a purge lifted last: records that were
// ingested before may be gone, or may have been left out and belong to the store now. It is zero where neither was ever
// done. What a person's purge takes out does not count, for it would not be stored again.
func newestPurge(ctx context.Context, conn driver.Conn) (at time.Time, err error) {
	entries, err := audit.List(ctx, conn, "")
	for _, e := range entries { // oldest first
		var details struct{ Of string }
		if e.Action == actionLift ||
			e.Action == actionPurge && (json.Unmarshal([]byte(e.Details), &details) != nil || details.Of != ofPerson) {
			at = e.At
		}
	}
	return at, err
}

// outdated reports whether what was ingested until an instant may be gone or incomplete since a purge at another one.
func outdated(ingested, purged time.Time) bool {
	return purged.After(ingested.Add(-snapshot.ClockMargin))
}
