package worker

import (
	"context"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// advise says what makes copying expensive for the source, or late, and how to change that.
func (w *worker) advise(ctx context.Context) error {
	for _, kind := range normalize.Kinds {
		var index string
		var gaps postgres.Gaps
		err := w.reading(ctx, "explain the mapping", func() (err error) {
			if index, err = w.Source.MissingIndex(ctx, kind); err != nil {
				return err
			}
			gaps, err = w.Source.Gaps(ctx, kind)
			return err
		})
		if err != nil {
			return err
		}
		if index != "" {
			w.Logger.Warn("the source has no index in the order of changes, so every poll reads and sorts all rows",
				"kind", kind, "create", index)
		}
		if len(gaps.Joined) > 0 {
			w.Logger.Warn("the mapping reads tables whose changes do not move its updated_at; such a change is copied by the "+
				"next full comparison (ingest/mappings.md)", "kind", kind, "tables", gaps.Joined)
		}
		if gaps.Hides && !w.DeleteMissing {
			w.Logger.Warn("the mapping may leave rows out; those that were copied before stay stored and are counted, unless "+
				"--delete-missing (ingest/mappings.md)", "kind", kind)
		}
	}
	return nil
}
