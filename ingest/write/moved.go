package write

import (
	"context"
	"fmt"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

// A MovedError is returned where organizations of a batch were, or are being, moved to another cell: what was stored of
// them is not acknowledged, and has to be written again where they are then. The rest of the batch is acknowledged.
type MovedError struct {
	Organizations map[schema.OrganizationID]bool
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%d organizations of the batch are being moved to another cell", len(e.Organizations))
}

// admitted stores a batch, and looks before and after whether its organizations may be written in the cell
// (cells.Gate).
func (w *Writer) admitted(ctx context.Context, b *Batch, store func() error) error {
	if w.Gate == nil {
		return store()
	}
	organizations := b.Organizations()
	var pass cells.Pass
	err := w.retry.Do(ctx, "find out where organizations are", func() (err error) {
		pass, err = w.Gate.Pass(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := store(); err != nil {
		return err
	}
	var refused map[schema.OrganizationID]bool
	err = w.retry.Do(ctx, "find out where organizations are", func() (err error) {
		refused, err = pass.Refused(ctx, organizations)
		return err
	})
	if err == nil && len(refused) > 0 {
		err = &MovedError{refused}
	}
	return err
}

// Closed returns which organizations may not be written in the cell now; nil for none.
func (w *Writer) Closed(
	ctx context.Context, organizations map[schema.OrganizationID]bool,
) (closed map[schema.OrganizationID]bool, err error) {
	if w.Gate == nil || len(organizations) == 0 {
		return nil, nil
	}
	err = w.retry.Do(ctx, "find out where organizations are", func() (err error) {
		closed, err = w.Gate.Closed(ctx, organizations)
		return err
	})
	return closed, err
}

// Organizations are those of the batch.
func (b *Batch) Organizations() map[schema.OrganizationID]bool {
	found := map[schema.OrganizationID]bool{}
	for i := range b.Agents {
		found[b.Agents[i].OrganizationID] = true
	}
	for i := range b.Runs {
		found[b.Runs[i].OrganizationID] = true
	}
	for i := range b.Attributions {
		found[b.Attributions[i].OrganizationID] = true
	}
	return found
}

// only takes the records out of a batch that are of other organizations, and returns where the attribution records
// stood that stay.
func (b *Batch) only(organizations map[schema.OrganizationID]bool, at []int) (stay []int) {
	b.Agents = keep(b.Agents, func(a *normalize.Agent) bool { return organizations[a.OrganizationID] })
	b.Runs = keep(b.Runs, func(r *normalize.Run) bool { return organizations[r.OrganizationID] })
	i := -1
	b.Attributions = keep(b.Attributions, func(a *normalize.Attribution) bool {
		i++
		if organizations[a.OrganizationID] {
			stay = append(stay, at[i])
		}
		return organizations[a.OrganizationID]
	})
	return stay
}

// keep returns the rows of which of is true, in a slice of their own.
func keep[R any](rows []R, of func(*R) bool) (kept []R) {
	for i := range rows {
		if of(&rows[i]) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}
