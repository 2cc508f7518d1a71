package rollup

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// resolve makes every record of which a row was stored in the span count once, where its source broke what contract 3
// calls immutable (contract 4.20).
//
//  1. Conflicts between attribution records are written to TableConflicts. From then on queries of the organization
//     leave out the superseded ones (within seconds, see olap/facts.go), and so do the rollup rows that this batch
//     writes. Where the order of copies is another one since the store's clock was set back, the rollup is damaged by
//     that, and what said that the one that counts is superseded goes first.
//  2. Runs that moved are written there, for whoever verifies the store or looks at its metrics.
//  3. Superseded marks are stored. From then on a run counts under one clock.
//
// All of it happens under the claim, before the records are refreshed and before the watermark moves. A refresher that
// dies between two of them leaves the watermark where it was, and the next one reads the same rows. Each of them only
// adds rows that are the same whoever adds them, so that repeats do no harm. Without the claim nothing is added: what a
// purge takes out must not come back as marks. Marks are stored after until, so that the next batch refreshes them;
// until then queries find them in the delta.
func (s *Refresher) resolve(ctx context.Context, c *claim, from, until time.Time) error {
	attributions := schema.ConflictingAttributions(refreshed, within(schema.TableAttributions))
	found, err := s.conflicts(ctx, schema.ConflictAttribution, attributions, from, until)
	if err != nil {
		return err
	}
	if found {
		if err := c.reverse(ctx, from, until); err != nil {
			return err
		}
		err := c.note(ctx, schema.ConflictAttribution, "id, clock, superseded", attributions, from, until)
		if err != nil {
			return err
		}
	}
	runs := schema.SupersededRuns(refreshed, schema.Among{Stored: within(schema.TableRuns)})
	moved, err := s.conflicts(ctx, schema.ConflictRun, runs, from, until)
	if err != nil {
		return err
	}
	if moved {
		if err := c.note(ctx, schema.ConflictRun, "run_id, created_at, true", runs, from, until); err != nil {
			return err
		}
		if err := c.supersede(ctx, runs, from, until); err != nil {
			return err
		}
	}
	return nil
}

// conflicts logs the conflicts that a statement selects, by organization, and reports whether there are any.
func (s *Refresher) conflicts(
	ctx context.Context, kind string, selected sql.Select, from, until time.Time,
) (found bool, err error) {
	var conflicts []struct {
		Organization string `ch:"organization"`
		Keys         uint64 `ch:"keys"`
	}
	counted := sql.Select{
		Columns: []string{"toString(organization_id) AS organization", "count() AS keys"}, From: sql.Query(selected),
		Group: []string{"organization_id"}, Order: []string{"organization_id"},
	}
	err = s.conn.Select(inserting(ctx, nil), &conflicts, counted.String(), span(from, until)...)
	if err != nil {
		return false, fmt.Errorf("rollup: read conflicts: %w", err)
	}
	for _, c := range conflicts {
		LogConflicts(s.logger, schema.OrganizationID(c.Organization), kind, c.Keys)
	}
	return len(conflicts) > 0, nil
}

// LogConflicts says how many records of a kind an organization's source changed that should never change, without what
// identifies a person.
func LogConflicts(logger *slog.Logger, organization schema.OrganizationID, kind string, count uint64) {
	logger.Warn("the source changed what should never change",
		"organization", organization, "record", kind, "count", count)
}

// reverse deletes what TableConflicts says of clocks that count after all, and writes damage of the organizations in
// whose rollup another one counts. Until that is repaired they are answered from the base tables.
func (c *claim) reverse(ctx context.Context, from, until time.Time) error {
	reversed := schema.ReversedAttributions(refreshed, within(schema.TableAttributions))
	var organizations []string
	named := sql.Select{Columns: []string{"groupUniqArray(toString(organization_id))"}, From: sql.Query(reversed)}
	err := c.conn.QueryRow(inserting(ctx, nil), named.String(), span(from, until)...).Scan(&organizations)
	if err != nil {
		return fmt.Errorf("rollup: read conflicts that are decided otherwise: %w", err)
	}
	if len(organizations) == 0 {
		return nil
	}
	if err := c.damage(ctx, schema.TableAttributions, false, organizations...); err != nil {
		return err
	}
	counting := schema.CountingAttributions(refreshed, withinSpan(schema.TableAttributions, from, until))
	return c.Alter(ctx, schema.TableConflicts, "DELETE", schema.SupersededAmong(counting))
}

// note writes conflicts to their table.
func (c *claim) note(
	ctx context.Context, kind, columns string, selected sql.Select, from, until time.Time,
) error {
	noted := sql.Select{Columns: []string{"organization_id", "'" + kind + "'", columns}, From: sql.Query(selected)}
	return c.add(inserting(ctx, nil), schema.TableConflicts,
		[]string{"organization_id", "kind", "id", "clock", "superseded"}, noted, span(from, until)...)
}

// supersede stores the marks of runs that moved.
func (c *claim) supersede(ctx context.Context, selected sql.Select, from, until time.Time) error {
	columns := []string{"organization_id", "created_at", "run_id", "state"}
	return c.add(inserting(ctx, clickhouse.Settings{"max_partitions_per_insert_block": 0}), schema.TableRuns, columns,
		sql.Select{Columns: columns, From: sql.Query(selected)}, span(from, until)...)
}
