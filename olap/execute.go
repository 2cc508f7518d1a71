package olap

import (
	"context"
	"errors"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/ext"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

// execute runs the statement of a plan, with the tables that come with it, and makes an answer of its rows.
func (e *Engine) execute(ctx context.Context, a *attempt, p plan.Plan) (*Result, error) {
	in := compile.Input{Plan: p, Organization: a.OrganizationID, After: a.after}
	statement := compile.Compile(in)
	var external []*ext.Table
	if len(statement.DeltaColumns) > 0 {
		needed := func(row rollup.DeltaRow) bool { return in.DeltaRow(row.Clock, row.FirstStoredAt, row.Sign < 0) }
		sent, err := a.delta.Delta.Table(statement.DeltaColumns, needed)
		if err != nil {
			return nil, err
		}
		external = append(external, sent)
	}
	if p.Strategy == plan.BaseRunsSent {
		external = append(external, a.outside.hashes)
	}
	a.executed = executed{plan: p, statement: statement, external: external, facts: time.Since(a.began)}
	strategy := strategyOf(a, p)
	table, err := exec.Run(ctx, e.conn, statement, a.QueryID, comment(a.Request, &strategy), external...)
	if err != nil {
		return nil, err
	}
	result := &Result{request: a.Request, execution: a.QueryID, strategy: strategy, asOf: p.AsOf, table: table}
	if statement.OwnClock {
		result.asOf = table.AsOf
	}
	if further := result.cut(); further && a.Query.Pages() {
		result.cursor = e.sealer.Load().Seal(a.OrganizationID, a.Query.Canonical(), cursor.Cursor{
			AsOf:  result.asOf,
			After: result.lastKeys(statement.Order),
		})
	}
	return result, nil
}

// validate returns which assumptions of a plan and its boundary were not valid.
func (a *attempt) validate(
	p plan.Plan, result *Result, failed error, c confirmation,
) (refuted plan.Assumption, err error) {
	switch {
	case errors.Is(failed, exec.ErrSharedKeys):
		return plan.KeysDistinct, nil
	case errors.Is(failed, exec.ErrLogChanged) && p.Assumes&plan.DeltaHolds != 0:
		return plan.DeltaHolds, nil
	case errors.Is(failed, exec.ErrLogChanged):
		return plan.RollupUnaltered, nil
	case failed != nil || c.err != nil:
		return 0, errors.Join(failed, c.err)
	}
	// A page that another one may follow needs a boundary that both can share, and an answer without rows has none.
	if a.boundary.assumes&plan.OnePage != 0 && (result.cursor != "" || result.asOf.IsZero()) {
		refuted |= plan.OnePage
	}
	if !c.confirmed {
		refuted |= plan.Idle
		a.waited = c.waited
	}
	if p.Assumes&plan.ClockForward != 0 && !result.asOf.IsZero() && !a.outside.valid(result.asOf) {
		refuted |= plan.ClockForward
	}
	return refuted, nil
}
