package rollup

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// insert refreshes one table. A big chunk is refreshed partition by partition, to bound memory.
func (c *claim) insert(ctx context.Context, t *schema.RollupTable, from, until time.Time, rows uint64) error {
	partitions := []string{""}
	if rows > 2*chunkRows {
		var err error
		if partitions, err = c.partitionsOf(ctx, t, from, until); err != nil {
			return err
		}
	}
	for _, partition := range partitions {
		if err := c.insertPartition(ctx, t, from, until, partition); err != nil {
			return err
		}
	}
	return nil
}

func (c *claim) partitionsOf(ctx context.Context, t *schema.RollupTable, from, until time.Time) (found []string,
	err error) {
	listed := sql.Select{
		Columns: []string{"arraySort(groupUniqArray(toString(" + t.Partition() + ")))"}, From: refreshed(t.Source),
		Where: []string{within(t.Source)},
	}
	if err = c.conn.QueryRow(ctx, listed.String(), span(from, until)...).Scan(&found); err != nil {
		err = fmt.Errorf("rollup: list what is refreshed of %s: %w", t.Table, err)
	}
	return found, err
}

func (c *claim) insertPartition(ctx context.Context, t *schema.RollupTable, from, until time.Time,
	partition string) error {
	stored := within(t.Source)
	organizations := sql.Select{
		Columns: []string{"organization_id"}, From: refreshed(t.Source), Where: []string{stored},
	}
	reading := schema.Reading{
		Read: refreshed, Stored: []string{stored}, Known: []string{"organization_id IN" + sql.In(organizations)},
	}
	if partition != "" {
		ofPartition := t.Partition() + " = " + partition
		reading.Stored, reading.Known = append(reading.Stored, ofPartition), append(reading.Known, ofPartition)
	}
	reading.Stored = append(reading.Stored, t.Counts(refreshed))
	n := len(t.Columns)
	_, _, names := t.Lists(n)
	changed := t.Changed(reading, n)
	changed.Having = "was_in_rollup = 0 OR old_record IS DISTINCT FROM new_record OR old_first != stored_first"
	ctx = inserting(ctx, clickhouse.Settings{
		// One block, of 2^32 rows at most, which is ClickHouse's own limit: the rows that subtract a record's old values
		// and those that add the new ones are in one part.
		"min_insert_block_size_rows": 1 << 32, "max_insert_block_size": 1 << 32, "min_insert_block_size_bytes": 0,
		"max_insert_threads": 1, "max_partitions_per_insert_block": 0,
	})
	return c.add(ctx, t.Table, slices.Concat(t.RecordKey(), names, []string{"first_stored_at", "sign"}),
		t.Signed(changed, n, t.RecordKey()...), span(from, until)...)
}

// add writes what a query selects to columns of a table. Without the claim it writes nothing.
func (c *claim) add(ctx context.Context, table string, columns []string, rows sql.Select, args ...any) error {
	rows.Where = append(slices.Clone(rows.Where), c.fence)
	insert := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ")\n" + rows.String()
	if err := c.conn.Exec(ctx, insert, args...); err != nil {
		return fmt.Errorf("rollup: write to %s: %w", table, err)
	}
	return nil
}

// inserting is a context for an insert that derives rows, or adds entries to the log. Its token is new each time, so
// that ClickHouse takes no insert for the repeat of another: the same rows may have to be written again after a record
// changed there and back. The name of the statement says that it stores no records, and takeClaim waits for it.
func inserting(ctx context.Context, more clickhouse.Settings) context.Context {
	settings := clickhouse.Settings{
		"async_insert": 0, "insert_deduplication_token": rand.Text(),
		"max_threads":                        1, // within the bound of one core
		"max_bytes_before_external_group_by": 1 << 30,
	}
	maps.Copy(settings, schema.ReadSettings)
	maps.Copy(settings, more)
	return clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()),
		clickhouse.WithSettings(settings))
}
