package rollup

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// SetClaimAge changes the age at which a claim is taken over.
func SetClaimAge(age time.Duration) (before time.Duration) {
	before, claimAge = claimAge, age
	return before
}

// ErrClaimed is what a batch that another refresher has ends with.
var ErrClaimed = errClaimed

// A Batch is a refresh batch that was claimed, to be done statement by statement.
type Batch struct{ c *claim }

// Claim takes the next batch as the store's log is.
func (s *Refresher) Claim(ctx context.Context) (Batch, error) {
	state, err := snapshot.ReadLog(ctx, s.conn)
	if err != nil {
		return Batch{}, err
	}
	c, err := takeClaim(ctx, s.conn, state, s.name)
	return Batch{c}, err
}

// NameInitiatorKeys is a part of a batch.
func (b Batch) NameInitiatorKeys(ctx context.Context, from, until time.Time) error {
	return b.c.name(ctx, within(schema.TableRuns), span(from, until)...)
}

// Insert is a part of a batch.
func (b Batch) Insert(ctx context.Context, from, until time.Time) error {
	for _, t := range schema.RollupTables {
		if err := b.c.insert(ctx, t, from, until, 1); err != nil {
			return err
		}
	}
	return nil
}

// End ends a batch without a commit.
func (b Batch) End(ctx context.Context) error { return b.c.end(ctx) }

// Done ends a batch.
func (b Batch) Done(ctx context.Context, until time.Time) error { return b.c.commit(ctx, until) }
