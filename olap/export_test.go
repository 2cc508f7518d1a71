package olap

import (
	"time"

	"github.com/runlens/runlens/schema"
)

// TakeAsLarge makes the engine take every organization for one with many records.
func (e *Engine) TakeAsLarge() { e.largeFrom = 0 }

// RememberNothing makes every statement look for changes itself.
func (e *Engine) RememberNothing() { e.changes.most = -1 }

// ForgetSizes makes the engine read at every question what decides how records are read.
func (e *Engine) ForgetSizes() { e.sizes.age = 0 }

// WaitForSteps changes how long a refresh batch is waited for.
func (e *Engine) WaitForSteps(d time.Duration) { e.changes.patient = d }

// TrustClock makes the engine take the store's clock for one that is never set back.
func (e *Engine) TrustClock() { e.changes.margin = 0 }

// RememberedChanges is how many changes of an organization are remembered; -1 if they are not.
func (e *Engine) RememberedChanges(organization schema.OrganizationID, source string) int {
	k, known := e.changes.recent.get(recordsOf{organization, source})
	if !known || k.changes == nil {
		return -1
	}
	return k.changes.Len()
}

// IdleFrom changes how long ago the last row was stored where no other is expected.
func (e *Engine) IdleFrom(d time.Duration) { e.idleFrom = d }

// WatchEvery changes how often it is looked whether a statement has its snapshots.
func (e *Engine) WatchEvery(d time.Duration) { e.watch = d }

// RunsOutside is how many runs are remembered not to be near.
func (e *Engine) RunsOutside() (n int) {
	for _, of := range e.missing.recent.known {
		n += of.value.hashes.Block().Rows()
	}
	return n
}

// MergedParts is how many parts of runs are remembered to be whole.
func (e *Engine) MergedParts() (n int) {
	for _, of := range e.missing.recent.known {
		n += len(of.value.whole)
	}
	return n
}

// CacheRunsOutsideSince makes what is remembered of them that of another instant.
func (e *Engine) CacheRunsOutsideSince(until time.Time) {
	for of, last := range e.missing.recent.known {
		last.value.until = until
		e.missing.recent.known[of] = last
	}
}

// Comment is the log_comment of a statement.
func Comment(r Request, strategy Strategy) string { return comment(r, &strategy) }
