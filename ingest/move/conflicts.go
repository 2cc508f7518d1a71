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

// noteConflicts notes when the new cell had conflicts of attribution records for the first time.
func (m *mover) noteConflicts(ctx context.Context, organizations []string) error {
	ofAttributions := table{name: schema.TableConflicts,
		where: ofOrganizations + " AND kind = '" + schema.ConflictAttribution + "'"}
	for some := range slices.Chunk(organizations, chunk) {
		var n uint64
		count := ofAttributions.rowsOf("count()")
		err := m.to.conn.QueryRow(ctx, count.String(), clickhouse.Named("organizations", some)).Scan(&n)
		if err != nil {
			return fmt.Errorf("cell %s: count conflicts: %w", m.to.name, err)
		}
		if n > 0 && m.conflicting.IsZero() {
			m.conflicting = time.Now()
		}
	}
	return nil
}

// awaitServers waits until every server of the new cell knows that attribution records have conflicts. Until then it
// would count them under all of their clocks.
func (m *mover) awaitServers(ctx context.Context) error {
	if m.conflicting.IsZero() {
		return nil
	}
	return snapshot.Pause(ctx, time.Until(m.conflicting.Add(m.o.Overview)))
}
