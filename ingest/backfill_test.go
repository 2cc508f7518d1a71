package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
)

// An interrupted backfill is continued by a run of the same files only: not after one of them
// changed, not of another list, and not after it came to its end.
func TestBackfill(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	ctx := context.Background()
	files := []ingest.Fingerprint{
		{Path: "/a", Bytes: 1, ModifiedAt: time.Unix(1, 0).UTC()},
		{Path: "/b", Bytes: 2, ModifiedAt: time.Unix(2, 0).UTC()},
	}
	backfill := func(files []ingest.Fingerprint) *ingest.Backfill {
		return ingest.NewBackfill(checkpoint.NewLog(conn, write.Retry{Logger: quiet}), files)
	}
	found := func(files []ingest.Fingerprint) (ingest.Progress, bool) {
		at, _, ok, err := backfill(files).Interrupted(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return at, ok
	}
	if _, ok := found(files); ok {
		t.Error("a backfill that never ran was interrupted")
	}
	running := backfill(files)
	for lines := 1; lines <= 3; lines++ {
		if err := running.Save(ctx, ingest.Progress{Source: 1, Position: source.Position{Offset: 7, Lines: lines},
			Summary: ingest.Summary{Read: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	if at, ok := found(files); !ok || at.Source != 1 || at.Position.Lines != 3 || at.Summary.Read != 10 {
		t.Errorf("%+v, %v", at, ok)
	}
	if _, ok := found(files[:1]); ok {
		t.Error("another list of files continues it")
	}
	changed := []ingest.Fingerprint{files[0], {Path: "/b", Bytes: 2, ModifiedAt: time.Unix(3, 0).UTC()}}
	if _, ok := found(changed); ok {
		t.Error("a changed file continues it")
	}
	// Whoever continues saves on top of what is there, whatever the clock says.
	continuing := backfill(files)
	if _, _, _, err := continuing.Interrupted(ctx); err != nil {
		t.Fatal(err)
	}
	if err := continuing.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok := found(files); ok {
		t.Error("a finished backfill is continued")
	}
}
