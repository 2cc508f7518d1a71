package write

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// A Resolving makes the records that a run stores count once by the time the run ends, where their source broke what
// contract 3 calls immutable (contract 4.20). Servers do that with their next refresh of the rollup, and a load is
// refreshed in the background; but who asks after the run expects all of it to count as it should.
type Resolving struct {
	conns []driver.Conn
	since []time.Time // by the clock of each store, when nothing was stored yet
	retry Retry
}

// BeginResolving is called before a run stores anything. continues says that it goes on with one that was interrupted:
// then whatever was not refreshed yet is looked at.
func BeginResolving(ctx context.Context, conns []driver.Conn, continues bool, retry Retry) (*Resolving, error) {
	s := &Resolving{conns, make([]time.Time, len(conns)), retry}
	for i := 0; i < len(conns) && !continues; i++ {
		err := s.retry.Do(ctx, "read the clock", func() error {
			now, err := snapshot.Now(ctx, conns[i])
			s.since[i] = now.Add(-rollup.Margin)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// End is called when everything has been acknowledged, and returns when every answer counts it once.
func (s *Resolving) End(ctx context.Context) error {
	wait := false
	for i, conn := range s.conns {
		refresher := rollup.New(conn, s.retry.Logger, rollup.Margin)
		err := s.retry.Do(ctx, "look for records that do not count once", func() error {
			noted, err := refresher.Noted(ctx, s.since[i]) // by a refresh meanwhile, or by an attempt before
			if err != nil {
				return err
			}
			found, err := refresher.Resolve(ctx, s.since[i])
			wait = wait || noted || found
			return err
		})
		if err != nil {
			return err
		}
	}
	if !wait {
		return nil
	}
	s.retry.Logger.Info("records contradict what was stored before; waiting until every server knows",
		"for", snapshot.OverviewAge)
	return snapshot.Pause(ctx, snapshot.OverviewAge)
}
