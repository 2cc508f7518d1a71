package worker

import (
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
)

// Reset clears the checkpoint of one kind of a source, whose next worker copies the kind from the beginning, and what
// moves noted of the source, so that no other one has to wait for its worker. None of it needs to be readable. It
// reports whether there was any of that.
// A worker that runs meanwhile saves its own again.
func Reset(ctx context.Context, conn driver.Conn, retry write.Retry, source string, kind normalize.Kind) (
	found bool, err error) {
	log, own := checkpoint.NewLog(conn, retry), checkpointName(source, kind)
	names, err := notesOf(ctx, log, own)
	if err != nil {
		return false, err
	}
	saved, err := log.Names(ctx, own)
	if err != nil {
		return false, err
	}
	if slices.Contains(saved, own) { // others have names that begin so
		names = append(names, own)
	}
	for _, name := range names {
		if err := log.Clear(ctx, name); err != nil {
			return false, err
		}
	}
	return len(names) > 0, nil
}

// SavedAt returns when the checkpoint of one kind of a source was saved, by the store's clock, if there is one.
func SavedAt(ctx context.Context, conn driver.Conn, retry write.Retry, source string, kind normalize.Kind) (
	at time.Time, found bool, err error) {
	var ignored position
	return checkpoint.NewLog(conn, retry).Load(ctx, checkpointName(source, kind), &ignored)
}
