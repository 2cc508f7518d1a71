package olap

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// facts reads what the plan of an attempt depends on, and no more than its query can use.
func (e *Engine) facts(ctx context.Context, a *attempt) (f plan.Facts, err error) {
	f.Refuted = a.refuted
	if f.AsOf, err = e.chooseBoundary(ctx, a); err != nil {
		return f, err
	}
	if err := e.sizeFacts(ctx, a, &f); err != nil {
		return f, err
	}
	if a.needs.Rollup != nil && a.needs.RollupPays(f.Records) && a.refuted&plan.RollupUnaltered == 0 {
		err = e.rollupFacts(ctx, a, &f)
	}
	return f, err
}

// sizeFacts says how many records of an organization there are, of its runs too where their states are needed.
func (e *Engine) sizeFacts(ctx context.Context, a *attempt, f *plan.Facts) error {
	size, err := e.sizes.of(ctx, a.records)
	if err != nil {
		return err
	}
	records := size.Records
	if len(a.needs.RunFields) > 0 {
		runs, err := e.sizes.of(ctx, snapshot.Records{Organization: a.OrganizationID, Source: schema.TableRuns})
		if err != nil {
			return err
		}
		records = max(records, runs.Records)
	}
	f.Records, f.Conflicts = max(records, e.atLeast), size.Conflicts || a.conflicts
	return nil
}

// rollupFacts reads how far the rollup may be used, and the delta.
func (e *Engine) rollupFacts(ctx context.Context, a *attempt, f *plan.Facts) (err error) {
	if a.refuted&plan.DeltaHolds == 0 {
		if a.delta, err = e.deltas.Get(ctx, a.records, a.needs.UsesInitiatorKeys()); err != nil {
			return err
		}
	}
	if a.delta.State.Now.IsZero() {
		if a.delta.State, err = e.deltas.State(ctx); err != nil {
			return err
		}
	}
	state := a.delta.State
	f.Watermark, f.Lease, f.Damage, f.Begun = state.Watermark(a.records), state.Lease, state.LastDamage, state.Begun
	if f.AsOf.IsZero() && !f.Watermark.IsZero() {
		// Rows stored from then on may be absent. One of the two was read for this query.
		if a.delta.Counters.Now.IsZero() {
			if a.delta.Counters, err = snapshot.ReadInsertCounter(ctx, e.conn, a.records); err != nil {
				return err
			}
		}
		if f.AsOf = state.Now; a.delta.Counters.Clock().After(f.AsOf) {
			f.AsOf = a.delta.Counters.Clock()
		}
	}
	if a.delta.Delta != nil {
		f.DeltaRead, f.DeltaRows = true, a.delta.Delta.Len()
	}
	return nil
}

// A boundary says how asOf was chosen.
type boundary struct {
	assumes plan.Assumption       // OnePage, Idle or nothing
	idle    snapshot.IdleBoundary // from before the statement, zero where the organization is not idle
	page    string                // for logs: "single", "first" or "next"
}

// chooseBoundary chooses asOf (package snapshot):
//
//  1. a continuation's is its cursor's;
//  2. a query that no page follows, or that was answered with one page the last time, takes the store's clock: zero for
//     that of its own statement. So does one that was not asked before and probably has one page. If the organization
//     is idle, it is enough that it possibly has: should a page follow, both can share that clock;
//  3. another first page takes one without waiting, if the organization is idle;
//  4. otherwise it waits for one, which a further attempt uses again.
func (e *Engine) chooseBoundary(ctx context.Context, a *attempt) (asOf time.Time, err error) {
	pages := a.Query.Pages()
	a.boundary = boundary{page: "first"}
	idle, isIdle := e.boundaries.Idle(a.records)
	switch {
	case a.Query.Cursor != "":
		a.boundary.page = "next"
		return a.asOf, nil
	case a.refuted&plan.OnePage == 0 && (!pages || e.expectsOnePage(a, isIdle)):
		a.boundary = boundary{page: "single", assumes: plan.OnePage, idle: idle}
		return time.Time{}, nil
	case !pages:
		a.boundary.page = "single"
		return snapshot.ClockOf(ctx, e.conn, a.records)
	case !a.waited.IsZero():
		return a.waited, nil
	case a.refuted&plan.Idle == 0 && isIdle:
		a.boundary.assumes, a.boundary.idle = plan.Idle, idle
		return idle.AsOf, nil
	}
	a.waited, err = e.boundaries.PageBoundaryOf(ctx, a.records)
	return a.waited, err
}

// A confirmation is what was found about a boundary.
type confirmation struct {
	confirmed bool
	waited    time.Time // a boundary that the next attempt can use
	err       error
}

// confirmBoundary starts to check whether the pages of a query can share its boundary, and returns a function that
// waits for the result. The statement's own clock is checked when the statement has run, if a page follows.
func (e *Engine) confirmBoundary(ctx context.Context, a *attempt) (wait func(*Result) confirmation) {
	idle := a.boundary.idle
	switch a.boundary.assumes {
	case plan.OnePage:
		return func(result *Result) confirmation { return e.confirmOwnClock(ctx, idle, result) }
	case plan.Idle:
		done := make(chan confirmation, 1)
		go func() { done <- e.confirm(ctx, idle) }()
		return func(*Result) confirmation { return <-done }
	}
	return func(*Result) confirmation { return confirmation{confirmed: true} }
}

func (e *Engine) confirm(ctx context.Context, boundary snapshot.IdleBoundary) (c confirmation) {
	c.confirmed, c.waited, c.err = e.boundaries.Confirm(ctx, boundary)
	return c
}

// confirmOwnClock checks the boundary of a result, nil for none, whose statement read it from the store's clock. A
// statement without rows reads no clock: then the store's clock is read now, which is as good, since it is later.
func (e *Engine) confirmOwnClock(ctx context.Context, idle snapshot.IdleBoundary, result *Result) confirmation {
	switch {
	case result == nil:
		return confirmation{}
	case result.cursor != "":
		return e.confirm(ctx, idle.At(result.asOf))
	case result.asOf.IsZero():
		var err error
		result.asOf, err = snapshot.Now(ctx, e.conn)
		return confirmation{confirmed: true, err: err}
	}
	return confirmation{confirmed: true}
}

func (e *Engine) expectsOnePage(a *attempt, idle bool) bool {
	if expected, known := e.onePage.Get(string(a.OrganizationID), a.question()); known {
		return expected
	}
	probably, possibly := a.needs.FitsPage()
	return probably || possibly && idle
}

// noteOnePage caches whether an answer was a single page. The next answer may have more pages.
func (e *Engine) noteOnePage(a *attempt, result *Result) {
	if a.Query.Pages() && a.Query.Cursor == "" {
		e.onePage.Put(string(a.OrganizationID), a.question(), result.cursor == "", 0)
	}
}
