package worker

import (
	"context"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// advise logs what makes copying expensive for the source, or late, and how to change that: what runlens doctor says.
func (w *worker) advise(ctx context.Context) error {
	for _, kind := range normalize.Kinds {
		err := w.examine(ctx, func() ([]finding.Finding, error) { return w.Source.Advise(ctx, kind, w.DeleteMissing) })
		if err != nil {
			return err
		}
	}
	return w.examine(ctx, func() ([]finding.Finding, error) { return w.Source.ExamineSettings(ctx) })
}

// examine logs what is found to be wrong.
func (w *worker) examine(ctx context.Context, examine func() ([]finding.Finding, error)) error {
	var found []finding.Finding
	err := w.reading(ctx, "examine the source", func() (err error) {
		found, err = examine()
		return err
	})
	if err != nil {
		return err
	}
	finding.Log(w.Logger, found)
	return nil
}
