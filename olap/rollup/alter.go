package rollup

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema/sql"
)

// mostNamed is how many partitions a statement that changes rows names at most, which bounds its text.
const mostNamed = 24

// Alter changes rows of a table: change is DELETE or UPDATE with assignments, where the condition of the rows. It
// returns when every part that has such rows is written again, projections included, on all replicas. Parts that are
// merged meanwhile are waited for. Where the claim is lost before or meanwhile, nothing or not everything is changed
// and the error says so.
//
// The partitions are looked up beforehand: ClickHouse evaluates the condition for every part that the statement does
// not exclude, and where no row is to be changed no statement is needed. A row never leaves its partition, and one that
// comes after the look-up comes after the change.
func (c *claim) Alter(ctx context.Context, table, change, where string) error {
	partitions, err := c.partitions(ctx, table, where)
	if err != nil || len(partitions) == 0 {
		return cmp.Or(err, c.check(ctx))
	}
	return c.alterIn(ctx, table, change, where, partitions...)
}

// everywhere stands for all partitions.
const everywhere = ""

// partitions returns in which partitions a condition is true of any row. Of a table of several replicas it returns
// everywhere: one may lack rows that another has.
func (c *claim) partitions(ctx context.Context, table, where string) (ids []string, err error) {
	looked := sql.Select{
		Columns: []string{"if((SELECT max(match(engine, '^(Replicated|Shared)')) FROM system.tables" +
			" WHERE database = currentDatabase() AND name = {table:String}), ['" + everywhere + "']," +
			" groupUniqArray(toString(_partition_id)))"},
		From: refreshed(table), Where: []string{where},
	}
	// ClickHouse refuses a statement over virtual columns that it answers from a projection.
	base := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"optimize_use_projections": 0}))
	err = c.conn.QueryRow(base, looked.String(), clickhouse.Named("table", table)).Scan(&ids)
	if err != nil {
		return nil, fmt.Errorf("rollup: look up what is changed of %s: %w", table, err)
	}
	if len(ids) > mostNamed {
		ids = []string{everywhere}
	}
	return ids, nil
}

// alterIn is Alter in some partitions, at least one.
func (c *claim) alterIn(ctx context.Context, table, change, where string, partitions ...string) error {
	changes := make([]string, len(partitions))
	for i, partition := range partitions {
		if partition != everywhere {
			partition = " IN PARTITION ID '" + partition + "'"
		}
		changes[i] = change + partition + " WHERE (" + where + ") AND " + c.fence
	}
	// Replicas evaluate the condition each for itself. What the subqueries read changes only with the claim.
	statement := "ALTER TABLE " + table + " " + strings.Join(changes, ", ") +
		" SETTINGS mutations_sync = 2, allow_nondeterministic_mutations = 1"
	// The name shows that the claim is alive while the statement runs.
	named := clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()))
	if err := c.conn.Exec(named, statement); err != nil {
		return fmt.Errorf("rollup: change %s: %w", table, err)
	}
	return c.check(ctx)
}

// waitForMutations waits for what ClickHouse mutates: statements of a process that died may still run.
func waitForMutations(ctx context.Context, conn driver.Conn) error {
	err := snapshot.AwaitNone(ctx, conn,
		"SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done")
	if err != nil {
		err = fmt.Errorf("rollup: %w", err)
	}
	return err
}
