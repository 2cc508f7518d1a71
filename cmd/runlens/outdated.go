package main

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// newestPurge returns when, by the store's clock, an organization was purged or a purge lifted last: records that were
// ingested before may be gone, or may have been left out and belong to the store now. It is zero where neither was ever
// done, and now while a purge has not ended.
func newestPurge(ctx context.Context, conn driver.Conn) (time.Time, error) {
	entries, err := audit.List(ctx, conn, "")
	if err != nil {
		return time.Time{}, err
	}
	at, unended := newestOf(entries)
	if unended {
		return snapshot.Now(ctx, conn)
	}
	return at, nil
}

// newestOf returns when the newest of those entries was made, oldest first, and whether one began that did not end, nor
// any later one of its organization: what a killed purge goes on to remove may have been ingested after it began. What
// a person's purge takes out does not count, for it would not be stored again.
func newestOf(entries []audit.Entry) (at time.Time, unended bool) {
	begun := map[uuid.UUID]schema.OrganizationID{}
	for _, e := range entries {
		var details struct{ Of string }
		purge := e.Action == actionPurge && (json.Unmarshal([]byte(e.Details), &details) != nil || details.Of != ofPerson)
		if !purge && e.Action != actionLift {
			continue
		}
		at = e.At
		switch {
		case purge && e.Outcome == audit.Begun:
			begun[e.ActionID] = e.OrganizationID
		case purge && e.Outcome == audit.Done:
			maps.DeleteFunc(begun, func(_ uuid.UUID, of schema.OrganizationID) bool { return of == e.OrganizationID })
		}
	}
	return at, len(begun) > 0
}

// outdated reports whether what was ingested until an instant may be gone or incomplete since a purge at another one.
func outdated(ingested, purged time.Time) bool {
	return purged.After(ingested.Add(-snapshot.ClockMargin))
}
