package worker

import (
	"context"

	"github.com/runlens/runlens/ingest/normalize"
)

// advise says what makes copying expensive for the source, or late, and how to change that.
func (w *worker) advise(ctx context.Context) error {
	for _, kind := range normalize.Kinds {
		err := w.reading(ctx, "explain the mapping", func() error {
			index, err := w.Source.MissingIndex(ctx, kind)
			if index != "" {
				w.Logger.Warn("the source has no index in the order of changes, so every poll reads and sorts all rows",
					"kind", kind, "create", index)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
