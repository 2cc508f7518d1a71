package doctor

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// mutations finds those that fail, which ClickHouse tries for ever. Whoever changes the rollup waits for all mutations
// first: what one of them has read may be out of date when it writes (rollup.Change).
func (s Store) mutations(ctx context.Context) (all []finding.Finding, err error) {
	failing, err := rows[struct {
		Table string `ch:"table"`
		ID    string `ch:"mutation_id"`
	}](ctx, s, "SELECT table, mutation_id FROM system.mutations WHERE database = {database:String} AND NOT is_done"+
		" AND latest_fail_reason != '' ORDER BY table, mutation_id", clickhouse.Named("database", s.Database))
	if err != nil {
		return nil, err
	}
	for _, m := range failing {
		do := fmt.Sprintf("fix what latest_fail_reason in system.mutations says, or end it: KILL MUTATION WHERE "+
			"database = '%s' AND table = '%s' AND mutation_id = '%s'", s.Database, m.Table, m.ID)
		all = append(all, of(finding.Problem, do,
			"a mutation of the table %s fails again and again; purges, repairs and new builds of the rollup wait", m.Table))
	}
	if len(all) == 0 {
		return ok("no mutation fails"), nil
	}
	return all, nil
}
