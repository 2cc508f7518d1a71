package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlens/runlens/http/client"
)

// grained asks for every week or month by itself and puts its first day in front of the rows.
func (r *Run) grained(ctx context.Context) (Table, error) {
	buckets := r.Question.Periods(r.span)
	r.Facts.Buckets = len(buckets)
	first, err := r.part(ctx, buckets[0].Span)
	if err != nil {
		return first, err
	}
	label := Column{Name: r.Question.Grain, Kind: Date}
	for _, b := range []Period{buckets[0], buckets[len(buckets)-1]} {
		if counted := r.asked(b.Span); counted != b.Whole {
			r.Facts.note(fmt.Sprintf("The %s of %s is counted in part: %s.", label.Name, b.Whole.Start.Format(time.DateOnly),
				counted))
		}
	}
	rows := func(yield func(Row, error) bool) {
		table := first
		for i, b := range buckets {
			if i > 0 {
				var err error
				if table, err = r.part(ctx, b.Span); err != nil {
					yield(nil, err)
					return
				}
			}
			for row, err := range table.Rows {
				if err == nil {
					row = slices.Insert(slices.Clone(row), 0, client.StringValue(b.Whole.Start.Format(time.DateOnly)))
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
	return Table{slices.Insert(slices.Clone(first.Columns), 0, label), rows}, nil
}
