package write

import (
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
)

// A column sends one field of all rows at once, which spares a conversion per cell.
type column[R any] func(to driver.BatchColumn, rows []R) error

func field[R, T any](get func(*R) T) column[R] {
	return func(to driver.BatchColumn, rows []R) error {
		var values [chunkRows]T
		for chunk := range slices.Chunk(rows, chunkRows) {
			for i := range chunk {
				values[i] = get(&chunk[i])
			}
			if err := to.Append(values[:len(chunk)]); err != nil {
				return err
			}
		}
		return nil
	}
}

// chunkRows bounds the memory of a column on its way to the driver, which copies it.
const chunkRows = 4096

// The columns in the order of schema.AgentColumns, RunColumns and AttributionColumns.
var (
	agentColumns = []column[normalize.Agent]{
		field(func(a *normalize.Agent) string { return string(a.OrganizationID) }),
		field(func(a *normalize.Agent) uuid.UUID { return a.AgentID }),
		field(func(a *normalize.Agent) string { return a.Name }),
		field(func(a *normalize.Agent) *string { return a.Slug }),
		field(func(a *normalize.Agent) *normalize.Instant { return a.DeletedAt }),
		field(func(a *normalize.Agent) normalize.Instant { return a.UpdatedAt }),
	}
	runColumns = []column[normalize.Run]{
		field(func(r *normalize.Run) string { return string(r.OrganizationID) }),
		field(func(r *normalize.Run) uuid.UUID { return r.RunID }),
		field(func(r *normalize.Run) normalize.Instant { return r.CreatedAt }),
		field(func(r *normalize.Run) uuid.UUID { return r.AgentID }),
		field(func(r *normalize.Run) string { return r.RunKind }),
		field(func(r *normalize.Run) *uuid.UUID { return r.ParentRunID }),
		field(func(r *normalize.Run) string { return r.Status }),
		field(func(r *normalize.Run) *string { return r.InitiatorIdentifier }),
		field(func(r *normalize.Run) *string { return r.InitiatorName }),
		field(func(r *normalize.Run) *string { return r.InitiatorType }),
		field(func(r *normalize.Run) normalize.Instant { return r.UpdatedAt }),
	}
	attributionColumns = []column[normalize.Attribution]{
		field(func(a *normalize.Attribution) string { return string(a.OrganizationID) }),
		field(func(a *normalize.Attribution) uuid.UUID { return a.AttributionID }),
		field(func(a *normalize.Attribution) uuid.UUID { return a.RunID }),
		field(func(a *normalize.Attribution) uuid.UUID { return a.AgentID }),
		field(func(a *normalize.Attribution) string { return a.UserIdentifier }),
		field(func(a *normalize.Attribution) *string { return a.UserName }),
		field(func(a *normalize.Attribution) string { return a.ActivityType }),
		field(func(a *normalize.Attribution) string { return a.RunInitiationType }),
		field(func(a *normalize.Attribution) string { return a.Source }),
		field(func(a *normalize.Attribution) normalize.Instant { return a.OccurredAt }),
	}
)
