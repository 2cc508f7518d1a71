package write_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
)

// The engine is killed at chosen renames, the steps by which parts come into being: the first falls between the entry
// in MergeTree's deduplication log and the part that it represents. No acknowledged batch is lost, whatever the retry
// gets as answer.
func TestCrashesOfTheEngineLoseNoAcknowledgedBatch(t *testing.T) {
	engine, dir := olaptest.OwnEngine(t)
	const size, steps = 1000, 8
	retries := 0
	writer := write.NewWriter(engine.Conn(),
		write.Retry{Logger: quiet.Logger, Patience: time.Minute, Count: func() { retries++ }})
	for step := 1; step <= steps; step++ {
		detach := clickhousetest.KillAtRename(t, dir, step)
		if err := writer.Write(context.Background(), inOneMonth(size)); err != nil {
			t.Fatal(err)
		}
		detach()
		if n := records(t, engine.Conn()); n != uint64(step*size) {
			t.Errorf("killed at rename %d: %d of %d acknowledged records are there", step, n, step*size)
		}
	}
	if retries == 0 {
		t.Error("no kill hit an insert")
	}
}
