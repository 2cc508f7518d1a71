package worker_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
)

// A clock that is kept to the second gives several versions of a row one updated_at. Polling copies each that it sees.
func TestVersionsOfOneInstant(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 3)
	b.do("UPDATE runs SET status = 'PENDING', updated_at = date_trunc('second', clock_timestamp())")
	status, _ := b.start(func(o *worker.Options) { o.Overlap = time.Hour }) // longer than the test takes
	b.untilCaughtUp(status, normalize.Kinds...)
	b.untilEqual()
	b.do("UPDATE runs SET status = 'COMPLETED'")
	b.untilEqual()
}
