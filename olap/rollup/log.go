package rollup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// unchanged is the condition that nothing was committed and no lease was taken since the log was read. Others may have
// claimed.
func unchanged(state snapshot.Log) string {
	return inLog("maxIf(tupleElement(latest, 1), kind = 'commit') = %d AND maxIf(tupleElement(latest, 1), kind = 'lease')"+
		" = %d", state.Committed, state.Lease)
}

// inLog is a condition, as for fmt.Sprintf, of aggregates over the log.
func inLog(condition string, args ...any) string {
	return sql.In(sql.Select{
		Columns: []string{fmt.Sprintf(condition, args...)}, From: refreshed(schema.TableRollupLog),
	})
}

// write adds an entry if a condition holds in the store while the statement runs.
func write(ctx context.Context, conn driver.Conn, kind string, number uint64, value int64, condition string) error {
	err := conn.Exec(inserting(ctx, nil), "INSERT INTO "+schema.TableRollupLog+" (kind, latest)"+
		" SELECT {kind:String}, ({number:UInt64}, {value:Int64}, now64(3, 'UTC')) WHERE "+condition,
		clickhouse.Named("kind", kind), clickhouse.Named("number", number), clickhouse.Named("value", value))
	if err != nil {
		return fmt.Errorf("rollup: write %s %d: %w", kind, number, err)
	}
	return nil
}

// writeFirst writes the commit that says that nothing is refreshed. Numbers begin where no earlier rollup log has been,
// which a process that was paused may have read.
func writeFirst(ctx context.Context, conn driver.Conn, state snapshot.Log) error {
	return write(ctx, conn, schema.LogCommit, uint64(state.Now.UnixMilli()), 0, unchanged(state))
}

// abandonedLease reports whether there is a lease of a process that died, by the age of its last sign of life. Leases
// are taken by programs of the first release, which may run beside this one while servers are replaced.
func abandonedLease(state snapshot.Log) bool {
	return state.Leased && state.Now.Sub(state.LeasedAt) > 2*time.Minute
}

// writeDamage writes entries of damage of a source, for every organization that a query selects. One without an
// organization has to be among them, if there is any: it is never taken out, and says that there was one
// (snapshot.Log.LastDamage). announced says that the damage is made on purpose.
func (c *claim) writeDamage(
	ctx context.Context, source string, announced bool, organizations sql.Select, args ...any,
) error {
	value := 0
	if announced {
		value = schema.LogAnnounced
	}
	entries := sql.Select{
		Columns: []string{"'" + schema.LogDamage + "'", "organization", "if(organization = '', '', {source:String})",
			fmt.Sprintf("({number:UInt64}, %d, now64(3, 'UTC'))", value)},
		From: sql.Query(organizations),
	}
	columns := []string{"kind", "organization_id", "source", "latest"}
	err := c.add(inserting(ctx, nil), schema.TableRollupLog, columns, entries,
		append(args, clickhouse.Named("source", source), clickhouse.Named("number", c.number))...)
	if err != nil {
		return err
	}
	return c.check(ctx)
}

// damage writes entries of some organizations.
func (c *claim) damage(ctx context.Context, source string, announced bool, organizations ...string) error {
	return c.writeDamage(ctx, source, announced,
		sql.Select{Columns: []string{"arrayJoin({organizations:Array(String)}) AS organization"}},
		clickhouse.Named("organizations", append([]string{""}, organizations...)))
}

// outdate writes the entry of damage of no organization, whoever has the claim: what was answered until now is not
// answered again.
func outdate(ctx context.Context, conn driver.Conn, number uint64) error {
	return write(ctx, conn, schema.LogDamage, number, schema.LogAnnounced, "true")
}

// damaged is the condition that a row of the log is a damage of some organization.
const damaged = "kind = '" + schema.LogDamage + "' AND organization_id != ''"

// within is the condition that a row of a source was stored in the span.
func within(source string) string {
	t := schema.RollupOf(source)
	return t.StoredAfter("fromUnixTimestamp64Milli({from:Int64}, 'UTC')") + " AND " + t.StoredAt +
		" <= fromUnixTimestamp64Milli({until:Int64}, 'UTC')"
}

// withinSpan is within with the span in its text: mutations have no parameters.
func withinSpan(source string, from, until time.Time) string {
	return strings.NewReplacer("{from:Int64}", strconv.FormatInt(from.UnixMilli(), 10),
		"{until:Int64}", strconv.FormatInt(until.UnixMilli(), 10)).Replace(within(source))
}

// span are the parameters of within: from exclusive, until inclusive.
func span(from, until time.Time) []any {
	return []any{clickhouse.Named("from", from.UnixMilli()), clickhouse.Named("until", until.UnixMilli())}
}
