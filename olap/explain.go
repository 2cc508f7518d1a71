package olap

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/ext"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/plan"
)

// executed is what an attempt executed.
type executed struct {
	plan      plan.Plan
	statement compile.Statement
	external  []*ext.Table
	facts     time.Duration // from the begin of the attempt to its plan
}

// An Explanation says how a query was answered, for operators: it quotes the statement and its parameters.
type Explanation struct {
	Strategy  Strategy // of the last attempt
	Rejected  []plan.Rejection
	AsOf      time.Time
	Rows      int // on the page
	Statement compile.Statement
	Plan      []string        // ClickHouse's, a line each
	Estimates []exec.Estimate // of the tables that the plan reads

	Facts     time.Duration // what reading the facts of the last attempt took
	Execution time.Duration // from sending its statement to its last row, with what ClickHouse took
	Total     time.Duration // all attempts, with their validation
	Cost      cost.Cost     // of the last attempt's statement
	All       cost.Cost     // of all statements
}

// Explain answers a request by the steps of Run, never with what another request found, and says how. The errors are
// those of Run.
func (e *Engine) Explain(ctx context.Context, request Request) (*Explanation, error) {
	r, err := request.narrow(time.Now())
	if err != nil {
		return nil, err
	}
	a, err := e.newAttempt(r)
	if err != nil {
		return nil, err
	}
	measured, all := cost.Measure(ctx)
	began := a.began
	result, err := e.attemptUntilValid(measured, a)
	if err != nil {
		return nil, err
	}
	did := a.executed
	x := &Explanation{
		Strategy: result.strategy, Rejected: did.plan.Rejected(), AsOf: result.asOf, Rows: result.RowCount(),
		Statement: did.statement,
		Facts:     did.facts, Execution: result.table.Took, Total: time.Since(began),
		Cost: result.table.Cost, All: all.Cost(),
	}
	x.Plan, x.Estimates, err = exec.Explain(ctx, e.conn, did.statement, did.external...)
	return x, err
}
