package olap

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
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
	switch {
	case f.Large && a.needs.Rollup != nil && a.refuted&plan.RollupUnaltered == 0:
		err = e.rollupFacts(ctx, a, &f)
	case f.Large && a.needs.JoinsWindow() && a.refuted&plan.ClockForward == 0:
		err = e.outsideFacts(ctx, a, &f)
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
	f.Large, f.Records, f.Conflicts = records >= e.largeFrom, records, size.Conflicts || a.conflicts
	return nil
}

// rollupFacts reads how far the rollup may be used, and the delta.
func (e *Engine) rollupFacts(ctx context.Context, a *attempt, f *plan.Facts) (err error) {
	if a.refuted&plan.DeltaHolds == 0 {
		if a.delta, err = e.deltas.Get(ctx, a.records); err != nil {
			return err
		}
	}
	if a.delta.State.Now.IsZero() {
		if a.delta.State, err = rollup.ReadState(ctx, e.conn); err != nil {
			return err
		}
	}
	state := a.delta.State
	f.Watermark, f.Lease, f.Damage, f.Begun = state.Watermark(a.records), state.Lease, state.LastDamage, state.Begun
	if f.AsOf.IsZero() && !f.Watermark.IsZero() {
		// Rows stored from then on may be absent. One of the two was read for this query.
		if f.AsOf = state.Now; a.delta.Counters.Now.After(f.AsOf) {
			f.AsOf = a.delta.Counters.Now
		}
	}
	if a.delta.Delta != nil {
		f.DeltaRead, f.DeltaRows, f.KeysShared = true, a.delta.Delta.Len(), a.delta.SharedKeys
	}
	return nil
}

// A boundary says how asOf was chosen.
type boundary struct {
	assumes plan.Assumption // OnePage, Idle or nothing
	idle    snapshot.IdleBoundary
	page    string // for logs: "single", "first" or "next"
}

// chooseBoundary chooses asOf (package snapshot):
//
//  1. a continuation's is its cursor's;
//  2. a query that no page follows, or that was answered with one page the last time, takes the store's clock: zero for
//     that of its own statement;
//  3. a first page takes one without waiting, if the organization is idle;
//  4. otherwise it waits for one.
func (e *Engine) chooseBoundary(ctx context.Context, a *attempt) (asOf time.Time, err error) {
	pages := a.Query.Pages()
	a.boundary = boundary{page: "first"}
	switch {
	case a.Query.Cursor != "":
		a.boundary.page = "next"
		return a.asOf, nil
	case a.refuted&plan.OnePage == 0 && (!pages || e.expectsOnePage(a)):
		a.boundary = boundary{page: "single", assumes: plan.OnePage}
		return time.Time{}, nil
	case !pages:
		a.boundary.page = "single"
		return snapshot.Now(ctx, e.conn)
	case !a.waited.IsZero():
		return a.waited, nil
	case a.refuted&plan.Idle == 0:
		if idle, ok := e.boundaries.Idle(a.records); ok {
			a.boundary.assumes, a.boundary.idle = plan.Idle, idle
			return idle.AsOf, nil
		}
	}
	return snapshot.PageBoundary(ctx, e.conn)
}

// A confirmation is what was found about a boundary while the statement ran.
type confirmation struct {
	confirmed bool
	waited    time.Time
	err       error
}

// confirmBoundary starts to check whether the pages of a query can share its boundary, and returns a function that
// waits for the result. After a boundary that was waited for, it reads the inserts in flight for the next query, which
// then need not wait.
func (e *Engine) confirmBoundary(ctx context.Context, a *attempt) (wait func() confirmation) {
	of, chosen := a.records, a.boundary
	if chosen.page != "first" {
		return func() confirmation { return confirmation{confirmed: true} }
	}
	done := make(chan confirmation, 1)
	go func() {
		c := confirmation{confirmed: true}
		if chosen.assumes&plan.Idle != 0 {
			c.confirmed, c.waited, c.err = e.boundaries.Confirm(ctx, chosen.idle)
		} else {
			c.err = e.boundaries.Look(ctx, of)
		}
		done <- c
	}()
	return func() confirmation { return <-done }
}

func (e *Engine) expectsOnePage(a *attempt) bool {
	if expected, known := e.onePage.Get(a.question()); known {
		return expected
	}
	return a.needs.FitsPage()
}

// noteOnePage caches whether an answer was a single page of rows. The next answer may have more pages.
func (e *Engine) noteOnePage(a *attempt, result *Result) {
	if a.Query.Pages() && a.Query.Cursor == "" {
		e.onePage.Put(a.question(), result.RowCount() > 0 && result.cursor == "")
	}
}
