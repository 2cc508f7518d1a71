package olap

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// CacheNoSizes makes the engine read at every query what decides how records are read.
func (e *Engine) CacheNoSizes() { e.view.SetOverviewAge(0) }

// CachedDelta is the number of rows of the cached delta of an organization; -1 where there is none.
func (e *Engine) CachedDelta(organization schema.OrganizationID, source string) int {
	return e.deltas.Len(snapshot.Records{Organization: organization, Source: source})
}

// Margin changes how long ago the last row was stored where no other is expected, and by how much the store's clock
// may be set back: with 0 it is taken for one that never is, and deltas are read at any time.
func (e *Engine) Margin(d time.Duration) { e.view.SetMargin(d) }

// FollowOnce does once what Follow does again and again.
func (e *Engine) FollowOnce(ctx context.Context) { e.follow(ctx) }

// Comment is the log_comment of a statement.
func Comment(r Request, strategy Strategy) string {
	asked, err := r.narrow(time.Now())
	if err != nil {
		panic(err)
	}
	return comment(asked, strategy)
}

// CachedBytes is what the cached answers are counted as.
func (e *Engine) CachedBytes() int { return e.answers.cached.Bytes() }

// Waiting is how many callers wait for an execution of another one to end.
func (e *Engine) Waiting() int { return e.flights.Waiting() }
