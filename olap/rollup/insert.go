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
)

// insert refreshes one table. A big chunk is refreshed partition by partition, to bound memory.
func (c *claim) insert(ctx context.Context, t *schema.RollupTable, from, until time.Time, rows uint64) error {
	partitions := []string{""}
	if rows > 2*chunkRows {
		var err error
		if partitions, err = c.partitions(ctx, t, from, until); err != nil {
			return err
		}
	}
	for _, partition := range partitions {
		if err := c.insertPartition(ctx, t, from, until, partition); err != nil {
			return fmt.Errorf("rollup: write to %s: %w", t.Table, err)
		}
	}
	return nil
}

func (c *claim) partitions(ctx context.Context, t *schema.RollupTable, from, until time.Time) (found []string,
	err error) {
	err = c.conn.QueryRow(ctx, "SELECT arraySort(groupUniqArray(toString("+t.Partition()+"))) FROM "+t.Source+" WHERE "+
		within(t.StoredAt), span(from, until)...).Scan(&found)
	return found, err
}

func (c *claim) insertPartition(ctx context.Context, t *schema.RollupTable, from, until time.Time,
	partition string) error {
	stored := within(t.StoredAt)
	known := "organization_id IN (SELECT organization_id FROM " + t.Source + " WHERE " + stored + ")"
	if partition != "" {
		ofPartition := " AND " + t.Partition() + " = " + partition
		stored, known = stored+ofPartition, known+ofPartition
	}
	stored += " AND " + t.Counts
	n := len(t.Columns)
	_, _, names := t.Lists(n)
	sql := "INSERT INTO " + t.Table + " (" + strings.Join(slices.Concat(t.RecordKey(), names), ", ") +
		", first_stored_at, sign) " +
		t.Signed(t.Changed(known, stored, "", n)+" HAVING was_in_rollup = 0 OR old_record IS DISTINCT FROM new_record", n,
			t.RecordKey()...) +
		// Without the claim it writes nothing.
		" WHERE " + c.fence
	ctx = inserting(ctx, clickhouse.Settings{
		// One block: the rows that subtract a record's old values and those that add the new ones are in one part.
		"min_insert_block_size_rows": 1 << 40, "min_insert_block_size_bytes": 0, "max_insert_threads": 1,
		"max_partitions_per_insert_block": 0,
	})
	return c.conn.Exec(ctx, sql, span(from, until)...)
}

// inserting is a context for an insert that derives rows. Its token is new each time, so that ClickHouse takes no
// insert for the repeat of another: the same rows may have to be written again after a record changed there and back.
func inserting(ctx context.Context, more clickhouse.Settings) context.Context {
	settings := clickhouse.Settings{
		"async_insert": 0, "insert_deduplication_token": rand.Text(),
		"enable_shared_storage_snapshot_in_query": 1,

		"max_threads":                        1, // within the bound of one core
		"max_bytes_before_external_group_by": 1 << 30,
	}
	maps.Copy(settings, schema.ReadSettings)
	maps.Copy(settings, more)
	return clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()),
		clickhouse.WithSettings(settings))
}
