package worker

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
)

// Reset clears the checkpoint of one kind of a source, whose next worker copies the kind from the beginning. It
// reports whether there was one. A worker that runs meanwhile saves its own again.
func Reset(ctx context.Context, conn driver.Conn, retry write.Retry, source string, kind normalize.Kind) (
	found bool, err error) {
	log := checkpoint.NewLog(conn, retry)
	var at position
	if _, found, err = log.Load(ctx, checkpointName(source, kind), &at); err != nil || !found {
		return false, err
	}
	return true, log.Clear(ctx, checkpointName(source, kind))
}
