package write

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A record whose source changes what contract 3 calls immutable counts once (contract 4.20). Where nobody may wait for
// the next refresh of the rollup, nor for the end of a run (Resolving), Write looks at what the store has of a batch's
// records before it inserts them (Batch.Once):
//
//   - An attribution record that was stored before gets the content that counts, so that it repeats it.
//   - Of a run that was stored under another clock, the clock that does not count has to be marked when the new one is
//     stored. Batch.Moved says so, and Resolve does it.
//
// Two writers that store the same record at one time don't see each other's. What they store is found by the refresh.

// readStored reads what any of a batch's organizations has stored.
var readStored = sql.AllOrganizations("each record of a batch is looked up in its own organization")

// A Moved is what Write stored of runs that the store had under another clock.
type Moved struct {
	Organizations map[schema.OrganizationID]bool // whose runs they are; nil for none
	Since         time.Time                      // nothing of the batch was stored before, by the store's clock
}

// Resolve makes the runs of a Moved count once, which were acknowledged.
func (w *Writer) Resolve(ctx context.Context, since time.Time) error {
	return w.retry.Do(ctx, "resolve runs that moved", func() error {
		_, err := rollup.New(w.conn, w.retry.Logger, rollup.Margin).Resolve(ctx, since)
		return err
	})
}

// lookUp looks at what the store has of a batch's records.
func (w *Writer) lookUp(ctx context.Context, b *Batch) error {
	b.Moved = Moved{}
	return w.retry.Do(ctx, "look up what was stored before", func() error {
		if err := w.keepStored(ctx, b); err != nil {
			return fmt.Errorf("look up attribution records: %w", err)
		}
		if err := w.findMoved(ctx, b); err != nil {
			return fmt.Errorf("look up runs: %w", err)
		}
		return nil
	})
}

// keepStored gives attribution records the content of the copy that counts of those in the store, and its clock.
func (w *Writer) keepStored(ctx context.Context, b *Batch) error {
	if len(b.Attributions) == 0 {
		return nil
	}
	known, err := ext.NewTable(schema.TableLookedUp, ext.Column("organization_id", "String"), ext.Column("id", "UUID"))
	for i := 0; err == nil && i < len(b.Attributions); i++ {
		err = known.Append(string(b.Attributions[i].OrganizationID), b.Attributions[i].AttributionID)
	}
	if err != nil {
		return err
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings), clickhouse.WithExternalTable(known))
	rows, err := w.conn.Query(ctx, schema.CountingAttributionRows(readStored).String())
	if err != nil {
		return err
	}
	defer rows.Close()
	stored := map[identity]normalize.Attribution{}
	for rows.Next() {
		var a normalize.Attribution
		var organization string
		var occurred time.Time
		if err := rows.Scan(&organization, &a.AttributionID, &a.RunID, &a.AgentID, &a.UserIdentifier, &a.UserName,
			&a.ActivityType, &a.RunInitiationType, &a.Source, &occurred); err != nil {
			return err
		}
		a.OrganizationID, a.OccurredAt = schema.OrganizationID(organization), occurred.UnixMilli()
		stored[identity{a.OrganizationID, a.AttributionID}] = a
	}
	if err := rows.Err(); err != nil {
		return err
	}
	found := contradictions{}
	for i := range b.Attributions {
		record := &b.Attributions[i]
		if a, ok := stored[identity{record.OrganizationID, record.AttributionID}]; ok {
			found.keep(record, &a)
		}
	}
	found.log(w.retry.Logger)
	return nil
}

// findMoved finds the organizations with runs that the store has under another clock, or that the batch has under two.
func (w *Writer) findMoved(ctx context.Context, b *Batch) error {
	if len(b.Runs) == 0 {
		return nil
	}
	known, err := ext.NewTable(schema.TableLookedUp, ext.Column("organization_id", "String"), ext.Column("id", "UUID"),
		ext.Column("clock", "DateTime64(3, 'UTC')"))
	moved := map[schema.OrganizationID]bool{}
	clocks := make(map[identity]normalize.Instant, len(b.Runs))
	for i := 0; err == nil && i < len(b.Runs); i++ {
		r := &b.Runs[i]
		who := identity{r.OrganizationID, r.RunID}
		if clock, repeated := clocks[who]; repeated && clock != r.CreatedAt {
			moved[r.OrganizationID] = true
		}
		clocks[who] = r.CreatedAt
		err = known.Append(string(r.OrganizationID), r.RunID, time.UnixMilli(r.CreatedAt))
	}
	if err != nil {
		return err
	}
	read := clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings), clickhouse.WithExternalTable(known))
	var found []string
	err = w.conn.QueryRow(read, schema.OrganizationsOfMovedRuns(readStored).String()).Scan(&found)
	if err != nil {
		return err
	}
	for _, organization := range found {
		moved[schema.OrganizationID(organization)] = true
	}
	if len(moved) == 0 {
		return nil
	}
	now, err := snapshot.Now(ctx, w.conn)
	b.Moved = Moved{moved, now.Add(-rollup.Margin)}
	return err
}

// An identity is what stands for one record, whatever it says (contract 3).
type identity struct {
	organization schema.OrganizationID
	id           uuid.UUID
}
