package worker

import (
	"context"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
)

// Reset clears the checkpoint of one kind of a source, whose next worker copies the kind from the beginning, and what
// moves noted of the source, so that no other one has to wait for its worker. It reports whether there was any of that.
// A worker that runs meanwhile saves its own again.
func Reset(ctx context.Context, conn driver.Conn, retry write.Retry, source string, kind normalize.Kind) (
	found bool, err error) {
	log, own := checkpoint.NewLog(conn, retry), checkpointName(source, kind)
	notes, err := readNotes(ctx, log, own, "")
	if err != nil {
		return false, err
	}
	names := slices.Collect(maps.Keys(notes))
	var at position
	if _, found, err = log.Load(ctx, own, &at); err != nil {
		return false, err
	}
	if found {
		names = append(names, own)
	}
	for _, name := range names {
		if err := log.Clear(ctx, name); err != nil {
			return false, err
		}
	}
	return len(names) > 0, nil
}
