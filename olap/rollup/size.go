package rollup

import (
	"context"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A Size is about how many records an organization has.
type Size struct {
	Records   uint64 // rows that were ever inserted, repeats and later versions too
	Conflicts bool   // attribution records have several contents or clocks (schema.TableConflicts)
}

// Sizes are the sizes of those records of which more than a few rows were inserted; zero of all others.
type Sizes map[snapshot.Records]Size

// ReadSizes reads the sizes of all records of which at least so many rows were inserted, or which have conflicts.
func ReadSizes(ctx context.Context, conn driver.Conn, least uint64) (Sizes, error) {
	var found []struct {
		Source       string `ch:"source"`
		Organization string `ch:"organization_id"`
		Inserted     uint64 `ch:"inserted"`
		Conflicts    bool   `ch:"conflicts"`
	}
	err := conn.Select(snapshot.OneThread(ctx), &found, "SELECT toString(source) AS source, organization_id,"+
		" sum(rows) AS inserted, false AS conflicts FROM "+schema.TableInsertCounters+
		" WHERE organization_id != '' GROUP BY source, organization_id HAVING inserted >= "+strconv.FormatUint(least, 10)+
		" UNION ALL SELECT DISTINCT '"+schema.TableAttributions+"', organization_id, 0, true FROM "+schema.TableConflicts+
		" WHERE kind = '"+schema.ConflictAttribution+"'")
	if err != nil {
		return nil, failure.Of("read the sizes of organizations", err)
	}
	sizes := Sizes{}
	for _, f := range found {
		of := snapshot.Records{Organization: schema.OrganizationID(f.Organization), Source: f.Source}
		known := sizes[of]
		sizes[of] = Size{max(known.Records, f.Inserted), known.Conflicts || f.Conflicts}
	}
	return sizes, nil
}
