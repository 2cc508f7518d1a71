package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/snapshot"
)

// outdated reports whether records that were ingested before an instant of the store's clock may be gone, or may have
// been left out and belong to it now. What a person's purge takes out would not be stored again.
func outdated(ctx context.Context, conn driver.Conn, instant time.Time) (bool, error) {
	entries, err := audit.List(ctx, conn, "")
	return slices.ContainsFunc(entries, func(e audit.Entry) bool {
		var details struct{ Of string }
		return e.At.After(instant.Add(-snapshot.ClockMargin)) && (e.Action == actionLift ||
			e.Action == actionPurge && (json.Unmarshal([]byte(e.Details), &details) != nil || details.Of != ofPerson))
	}), err
}
