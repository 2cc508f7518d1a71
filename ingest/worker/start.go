package worker

import (
	"context"
	"time"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// passStart reads what is in progress at the source and returns from where the pass has to read that begins now, and
// the instant whose state it will see. The source's clock counts, and no row's time does: a row with a time in the
// future hides nothing.
func (c *copier) passStart(ctx context.Context, first bool) (from, asOf time.Time, err error) {
	var activity postgres.Activity
	var asked time.Time
	err = c.reading(ctx, "read what is in progress at the source", func() (err error) {
		asked = time.Now()
		activity, err = c.Source.Activity(ctx)
		return err
	})
	if err != nil {
		return from, asOf, err
	}
	asOf = asked.Add(-activity.Behind)
	by, noticed := c.clock.Observe(asked, activity.Now, time.Now())
	since := c.changedSince(activity, by, first)
	if noticed && since.Before(c.horizon.now) || first && since.Before(c.saved.Until) {
		c.Logger.Warn("the source's clock was set back; reading again from before that", "kind", c.kind, "to", activity.Now)
	}
	if err := c.goBack(ctx, since); err != nil {
		return from, asOf, err
	}
	if first {
		c.horizon.floor = c.saved.Certain
	}
	from = c.horizon.advance(activity, since)
	if first && c.horizon.blind() {
		// Not what was certain, which may be nothing: that is read when what hides it has ended.
		from = back(c.saved.Until, maxReach)
	}
	c.inFlight.RLock()
	c.recent.forget(c.readAgain(activity.Now, from, first))
	c.inFlight.RUnlock()
	c.warn()
	return back(from, c.Overlap), asOf, nil
}

// changedSince is an instant at or before the times of all that has changed since the last Activity, or since the
// checkpoint was saved. It is the source's clock of then, unless that was set back since:
//
//  1. The worker's own clock says how long ago the last Activity was, and so by how much the source's may have been set
//     back. What changed before it was has a time at or after the clock of then, and what changed after it was has one
//     at or after the clock of now less that long. Less than a second goes unnoticed, which the overlap is for.
//  2. A clock that is behind the checkpoint was set back while no worker looked. Nobody knows when, so as much is read
//     again as is remembered otherwise. A full comparison finds the rest.
//  3. The clock of a standby is that of a commit, which stands still while there is none. It says that its primary's
//     was set back only when it goes back itself.
func (c *copier) changedSince(a postgres.Activity, by time.Duration, first bool) time.Time {
	switch {
	case first && a.Now.Before(c.saved.Until):
		return back(a.Now, maxReach)
	case first:
		return c.saved.Until
	case a.Standby() && !a.Now.Before(c.horizon.now):
		return c.horizon.now
	}
	return c.horizon.now.Add(-by)
}

// goBack has the status and the checkpoint claim nothing of what may have changed since an instant: the source's clock
// may pass the checkpoint once more while no worker looks. A worker that starts reads from an overlap before it.
func (c *copier) goBack(ctx context.Context, since time.Time) error {
	c.Status.setBack(c.kind, since)
	if !since.Before(back(c.saved.Until, c.Overlap)) {
		return nil
	}
	next := c.saved
	next.Certain, next.Until = earlier(next.Certain, since), earlier(next.Until, since)
	return c.keep(ctx, next)
}

// readAgain is the instant from which this pass or a later one may read what an earlier one has read, within bounds.
// The source shows a transaction some time after its begin, which the overlap is for. So later passes may begin an
// overlap before the clock of this one, and each reads an overlap more.
func (c *copier) readAgain(now, from time.Time, first bool) time.Time {
	again, _ := c.horizon.oldest(separate)
	again = earlier(again, back(now, c.Overlap))
	if !first {
		again = earlier(again, from)
	}
	if reach := now.Add(-maxReach); again.Before(reach) {
		again = reach
	}
	return back(again, c.Overlap)
}

// back is an instant earlier by d, or the zero one.
func back(at time.Time, d time.Duration) time.Time {
	if at.Before(time.Time{}.Add(d)) {
		return time.Time{}
	}
	return at.Add(-d)
}

// warn says once what the source does not show.
func (c *copier) warn() {
	_, name := c.horizon.oldest(everything)
	if name != postgres.Hidden && name != postgres.Standby {
		name = ""
	}
	if name != c.warned && name != "" {
		c.Logger.Warn("late commits may go unseen until a full comparison", "kind", c.kind, "because", name)
	}
	c.warned = name
}
