package olap

import (
	"context"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

// facts reads what the plan of an attempt depends on, and no more than its query can use.
func (e *Engine) facts(ctx context.Context, a *attempt) (f plan.Facts, err error) {
	ctx, span := trace.Start(ctx, "plan")
	defer func() { trace.End(span, err) }()
	f.Refuted, f.Options = a.refuted, e.options
	if err := e.boundaryFacts(ctx, a, &f); err != nil {
		return f, err
	}
	if err := e.sizeFacts(ctx, a, &f); err != nil {
		return f, err
	}
	if a.needs.AvoidsRollup(f) == "" {
		err = e.rollupFacts(ctx, a, &f)
	}
	return f, err
}

// boundaryFacts finds asOf, zero for the own clock of the statement.
func (e *Engine) boundaryFacts(ctx context.Context, a *attempt, f *plan.Facts) (err error) {
	m := plan.Memory{Awaited: !a.awaited.IsZero()}
	if a.Query.Pages() && a.Query.Cursor == "" {
		a.derived, m.Idle = e.view.Derive(a.OrganizationID)
		m.OnePage, m.Asked = e.onePage.Get(string(a.OrganizationID), a.question())
	}
	switch f.Boundary = a.needs.ChooseBoundary(m, a.refuted, e.options); f.Boundary {
	case plan.Given:
		f.AsOf = a.asOf
	case plan.Derived:
		f.AsOf = a.derived.AsOf
	case plan.Awaited:
		if a.awaited.IsZero() {
			a.awaited, err = e.view.Await(ctx, a.OrganizationID)
		}
		f.AsOf = a.awaited
	}
	return err
}

// sizeFacts says how many records of an organization there are, of its runs too where their states are needed.
func (e *Engine) sizeFacts(ctx context.Context, a *attempt, f *plan.Facts) error {
	size, err := e.view.Size(ctx, a.records)
	if err != nil {
		return err
	}
	records := size.Records
	if len(a.needs.RunFields) > 0 {
		runs, err := e.view.Size(ctx, snapshot.Records{Organization: a.OrganizationID, Source: schema.TableRuns})
		if err != nil {
			return err
		}
		records = max(records, runs.Records)
	}
	f.Records = max(records, e.options.Records)
	f.Conflicts = size.Conflicts || a.conflicts
	return nil
}

// rollupFacts reads how far the rollup may be used, and the delta.
func (e *Engine) rollupFacts(ctx context.Context, a *attempt, f *plan.Facts) (err error) {
	refuted := a.refuted&plan.DeltaHolds != 0
	if refuted {
		e.deltas.Forget(a.records)
	}
	if refuted || e.options.NoCachedDelta {
		a.delta, err = e.deltas.None(ctx, a.records)
	} else {
		a.delta, err = e.deltas.Get(ctx, a.records, a.needs.UsesInitiatorKeys())
	}
	if err != nil {
		return err
	}
	log := a.delta.Snapshot.Log
	f.Watermark, f.Lease, f.Damage, f.Begun = log.Watermark(a.records), log.Lease, log.LastDamage, log.Begun
	if f.AsOf.IsZero() && !f.Watermark.IsZero() {
		f.AsOf = a.delta.Snapshot.Clock(a.OrganizationID) // rows stored from then on may be absent
	}
	if a.delta.Delta != nil {
		f.DeltaRead, f.DeltaRows = true, a.delta.Delta.Len()
	}
	return nil
}

// confirm begins to check whether the pages of a query can share its boundary, and returns a function that waits for
// the result. A derived boundary is checked in parallel with the statement, the statement's own clock when it has run,
// if a page follows.
func (e *Engine) confirm(ctx context.Context, a *attempt, p plan.Plan) (confirmed func(*Result) (bool, error)) {
	check := func(of snapshot.Derived) (confirmed bool, err error) {
		confirmed, waited, err := e.view.Confirm(ctx, of, a.OrganizationID)
		if !confirmed {
			a.awaited = waited
		}
		return confirmed, err
	}
	switch p.Boundary {
	case plan.OwnClock:
		return func(result *Result) (bool, error) {
			if result == nil || result.cursor == "" {
				return true, nil
			}
			return check(a.derived.At(result.asOf))
		}
	case plan.Derived:
		var ok bool
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			ok, err = check(a.derived)
		}()
		return func(*Result) (bool, error) {
			<-done
			return ok, err
		}
	}
	return func(*Result) (bool, error) { return true, nil }
}

// noteOnePage caches whether an answer was a single page. The next answer may have more pages.
func (e *Engine) noteOnePage(a *attempt, result *Result) {
	if a.Query.Pages() && a.Query.Cursor == "" {
		e.onePage.Put(string(a.OrganizationID), a.question(), result.cursor == "", 0)
	}
}
