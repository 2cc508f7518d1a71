package rollup

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/schema"
)

// writeDamage writes entries of damage, under a claim. An entry without an organization, which is never taken out,
// says that there was one (State.LastDamage).
func (c *claim) writeDamage(ctx context.Context, t *schema.RollupTable, organizations ...string) error {
	err := c.conn.Exec(entering(ctx), "INSERT INTO "+schema.TableRollupLog+" (kind, organization_id, source, latest)"+
		" SELECT {kind:String}, organization, if(organization = '', '', {source:String}),"+
		" ({number:UInt64}, 0, now64(3, 'UTC'))"+
		" FROM (SELECT arrayJoin({organizations:Array(String)}) AS organization) WHERE "+c.fence,
		clickhouse.Named("kind", string(damage)), clickhouse.Named("source", t.Source), clickhouse.Named("number", c.number),
		clickhouse.Named("organizations", append([]string{""}, organizations...)))
	if err != nil {
		return fmt.Errorf("rollup: write damage %d: %w", c.number, err)
	}
	return c.check(ctx)
}

// damaged is the condition that a row of the log is a damage of some organization.
const damaged = "kind = '" + string(damage) + "' AND organization_id != ''"
