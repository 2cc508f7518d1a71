package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// noteConflicts notes since when the new cell has conflicts of attribution records of as many organizations as now.
// Servers know of each organization whether there are any.
func (m *mover) noteConflicts(ctx context.Context, organizations []string) error {
	ofAttributions := table{name: schema.TableConflicts,
		where: ofOrganizations + " AND kind = '" + schema.ConflictAttribution + "'"}
	var all uint64
	for some := range slices.Chunk(organizations, chunk) {
		var n uint64
		count := ofAttributions.rowsOf("uniqExact(organization_id)")
		err := m.to.conn.QueryRow(ctx, count.String(), clickhouse.Named("organizations", some)).Scan(&n)
		if err != nil {
			return fmt.Errorf("cell %s: count conflicts: %w", m.to.name, err)
		}
		all += n
	}
	if all > m.conflicting {
		m.conflicting, m.conflictingSince = all, time.Now()
	}
	return nil
}

// awaitServers waits until every server of the new cell knows that attribution records have conflicts. Until then it
// would count them under all of their clocks.
func (m *mover) awaitServers(ctx context.Context) error {
	if m.conflicting == 0 {
		return nil
	}
	return snapshot.Pause(ctx, time.Until(m.conflictingSince.Add(m.o.Overview)))
}
