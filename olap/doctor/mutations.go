package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// mutations finds those that fail, which ClickHouse tries for ever, and those that take long, as while merges are
// stopped. Whoever changes the rollup waits for all mutations first: what one of them has read may be out of date when
// it writes (rollup.Change).
func (s Store) mutations(ctx context.Context) (all []finding.Finding, err error) {
	unfinished, err := rows[struct {
		Table   string `ch:"table"`
		ID      string `ch:"mutation_id"`
		Fails   bool   `ch:"fails"`
		Parts   int64  `ch:"parts_to_do"`
		Seconds int64  `ch:"seconds"`
	}](ctx, s, "SELECT table, mutation_id, latest_fail_reason != '' AS fails, parts_to_do,"+
		" toInt64(now() - create_time) AS seconds FROM system.mutations"+
		" WHERE database = {database:String} AND NOT is_done ORDER BY table, mutation_id",
		clickhouse.Named("database", s.Database))
	if err != nil {
		return nil, err
	}
	for _, m := range unfinished {
		if since := time.Duration(m.Seconds) * time.Second; !m.Fails {
			if since >= s.LongMutation {
				all = append(all, of(finding.Warning, "wait, and if no parts become fewer: SYSTEM START MERGES "+
					identifier(s.Database)+"."+identifier(m.Table), "a mutation of the table %s goes on for %v, with parts left: %d; "+
					"purges, repairs and new builds of the rollup wait", m.Table, since, m.Parts))
			}
			continue
		}
		do := fmt.Sprintf("fix what latest_fail_reason in system.mutations says, or end it: KILL MUTATION WHERE "+
			"database = '%s' AND table = '%s' AND mutation_id = '%s'", s.Database, m.Table, m.ID)
		all = append(all, of(finding.Problem, do,
			"a mutation of the table %s fails again and again; purges, repairs and new builds of the rollup wait", m.Table))
	}
	if len(all) == 0 {
		return ok("no mutation fails or takes long"), nil
	}
	return all, nil
}
