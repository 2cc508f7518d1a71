package write_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A waitingLog ends the wait of Resolving.End when that is logged.
type waitingLog struct {
	slog.Handler
	waits context.CancelFunc
}

func (waitingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l waitingLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "waiting until every server knows") {
		l.waits()
	}
	return nil
}

// A run ends when every server knows of conflicts between what it stored and what was stored before, also where a
// refresh found them first, which was a moment ago.
func TestResolvingWaitsForWhatARefreshNoted(t *testing.T) {
	for name, refreshes := range map[string]bool{"refreshed": true, "not refreshed": false} {
		conn := olaptest.OpenStore(t).Conn()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		retry := write.Retry{Logger: slog.New(waitingLog{slog.DiscardHandler, cancel})}
		first, other := batch(1), batch(1)
		other.Attributions[0].AttributionID = first.Attributions[0].AttributionID
		other.Attributions[0].OccurredAt++
		run, err := write.BeginResolving(ctx, []driver.Conn{conn}, false, retry)
		for _, b := range []*write.Batch{first, other} {
			if err == nil {
				err = write.NewWriter(conn, quiet).Write(ctx, b)
			}
		}
		if err == nil && refreshes {
			err = rollup.New(conn, quiet.Logger, 0).Refresh(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := run.End(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: it ended without waiting: %v", name, err)
		}
	}
	conn := olaptest.OpenStore(t).Conn()
	run, err := write.BeginResolving(t.Context(), []driver.Conn{conn}, false, quiet)
	if err == nil {
		err = write.NewWriter(conn, quiet).Write(t.Context(), batch(3))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err == nil {
		err = run.End(ctx)
	}
	if err != nil {
		t.Error(err)
	}
}
