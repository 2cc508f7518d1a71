package rollup

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// unchanged is the condition that nothing was committed and no lease was taken since the log was read. Leases may have
// been kept alive, and batches claimed.
func unchanged(state snapshot.Log) string {
	return fmt.Sprintf("(SELECT maxIf(tupleElement(latest, 1), kind = 'commit') = %d AND maxIf(tupleElement(latest, 1), "+
		"kind = 'lease') = %d FROM %s)",
		state.Committed, state.Lease, schema.TableRollupLog)
}

// entering is a context for a statement that adds entries. Its token is new each time, so that ClickHouse takes no
// entry for the repeat of another. The name of the statement says that it changes no records, and lets take wait for
// those of others.
func entering(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()),
		clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplication_token": rand.Text()}))
}

// write adds an entry if a condition holds in the store while the statement runs.
func write(ctx context.Context, conn driver.Conn, kind string, number uint64, value int64, condition string) error {
	err := conn.Exec(entering(ctx), "INSERT INTO "+schema.TableRollupLog+" (kind, latest)"+
		" SELECT {kind:String}, ({number:UInt64}, {value:Int64}, now64(3, 'UTC')) WHERE "+condition,
		clickhouse.Named("kind", kind), clickhouse.Named("number", number), clickhouse.Named("value", value))
	if err != nil {
		return fmt.Errorf("rollup: write %s %d: %w", kind, number, err)
	}
	return nil
}

// writeDamage writes entries of damage, under a claim. An entry without an organization, which is never taken out,
// says that there was one (State.LastDamage).
func (c *claim) writeDamage(ctx context.Context, t *schema.RollupTable, organizations ...string) error {
	err := c.conn.Exec(entering(ctx), "INSERT INTO "+schema.TableRollupLog+" (kind, organization_id, source, latest)"+
		" SELECT {kind:String}, organization, if(organization = '', '', {source:String}),"+
		" ({number:UInt64}, 0, now64(3, 'UTC'))"+
		" FROM (SELECT arrayJoin({organizations:Array(String)}) AS organization) WHERE "+c.fence,
		clickhouse.Named("kind", schema.LogDamage), clickhouse.Named("source", t.Source),
		clickhouse.Named("number", c.number),
		clickhouse.Named("organizations", append([]string{""}, organizations...)))
	if err != nil {
		return fmt.Errorf("rollup: write damage %d: %w", c.number, err)
	}
	return c.check(ctx)
}

// damaged is the condition that a row of the log is a damage of some organization.
const damaged = "kind = '" + schema.LogDamage + "' AND organization_id != ''"

// within is the condition that a row was stored in the span.
func within(storedAt string) string {
	return storedAt + " > fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND " + storedAt +
		" <= fromUnixTimestamp64Milli({until:Int64}, 'UTC')"
}

// span are the parameters of within: from exclusive, until inclusive.
func span(from, until time.Time) []any {
	return []any{clickhouse.Named("from", from.UnixMilli()), clickhouse.Named("until", until.UnixMilli())}
}
