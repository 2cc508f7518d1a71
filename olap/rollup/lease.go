package rollup

import (
	"context"
	"errors"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	// Abandoned is the age of the last sign of life at which a lease is taken for that of a process that died.
	Abandoned = 2 * time.Minute

	leasePoll = 50 * time.Millisecond
	// signOfLife is the pause between two signs of life of a lease; well below Abandoned.
	signOfLife      = 20 * time.Second
	releasePatience = 10 * time.Second
)

var (
	// nodePause is the pause between taking a lease and changing the rollup, for inserts that run on other nodes of a
	// cluster: system.processes shows one node's statements. Shorter only in tests.
	nodePause = 2 * time.Second
	// abandoned is Abandoned but for tests.
	abandoned = Abandoned
)

// ErrLost is the error of a change whose process gave no sign of life for Abandoned, so that another process has
// taken the tables over. The change is not complete. It may be made again.
var ErrLost = errors.New("rollup: the lease was lost: " +
	"this process was paused for so long that another one took over; run the command again")

// A Lease is the exclusive right to take records out of the store or to rewrite the rollup. Refreshers and queries
// leave the rollup alone meanwhile.
//
// A lease is an entry of the kind lease with a number and the writer's random name. A lease is valid while no entry of
// the kind lease is greater than (number, writer), and nothing was committed with that number or a greater one. Numbers
// only grow, so a lease that was once lost never becomes valid again, and one that is valid now was valid all the time
// since it was taken.
//
//  1. Take. The number is one more than the greatest in the log. The insert of the entry carries the condition that no
//     lease was taken or released since the log was read. Then all other inserts into the log and into the rollup that
//     are running are waited for, and the log is read: of several takers whose inserts ran at once the one with the
//     greatest number and name has the lease. A crash leaves a lease that nobody keeps alive: see 6.
//  2. Pause, for inserts that run on other nodes. A crash: see 6.
//  3. Change. Every statement that changes rows goes through Alter. It carries the fence, a condition on the log that
//     ClickHouse evaluates for each part when it rewrites that part, not when it accepts the statement: a statement
//     that was sent, queued or interrupted under a lease that is lost by then changes nothing. After each statement the
//     log is read: only a lease that is valid then proves that the statement did all of its work. A crash leaves a
//     change that is made in part: see 6. Queries that use the rollup find the lease in their own snapshot, and begin
//     again (schema.RollupUnchanged).
//  4. Sign of life. The entry of 1 is written again with the time, on the condition that the lease is valid. Who finds
//     that it is not cancels the change with ErrLost.
//  5. Release. The entry of 1 is written once more, so that no answer of before the last change is used from a cache.
//     Then the entry commit with number + 1 is written, on the condition that the lease is valid. It says up to when
//     the rollup is refreshed. A crash before it: see 6. After it nothing is left to do.
//  6. Take over. A lease without a sign of life for Abandoned is taken by a refresher, or by whoever wants a lease, as
//     in 1: from then on the old one is lost. What ClickHouse still mutates is waited for. Then the rollup and what a
//     purge has named to be purged are emptied, and the release says that nothing is refreshed, so that the refresher
//     builds the rollup from the source tables as they are. A crash of the one who takes over leaves a lease of its
//     own: again 6.
//
// A change that was left in the middle is complete when it is made again, which is its caller's to do: 6 only makes the
// rollup right.
type Lease struct {
	entry
	until time.Time // how far records were refreshed when it was taken
}

// WithLease makes a change that takes records out of the store, or otherwise alters what is refreshed, under a lease.
// The change has to leave the rollup as if the records had never been there. When it fails, the rollup stays out of use
// until the lease is taken over. A lease of a process that died is taken over first, which may take Abandoned. The
// error is ErrLost when this process lost the lease; then the change is not complete.
func WithLease(ctx context.Context, conn driver.Conn, change func(context.Context, *Lease) error) error {
	l, err := take(ctx, conn, 0)
	if err != nil {
		return err
	}
	return l.run(ctx, l.until, change)
}

// Rebuild empties the rollup, so that it is built from its sources again. A lease without a sign of life for so long,
// which is Abandoned but for tests, is taken over.
func Rebuild(ctx context.Context, conn driver.Conn, after time.Duration) error {
	l, err := take(ctx, conn, after)
	if err != nil {
		return err
	}
	return l.run(ctx, time.UnixMilli(0), func(ctx context.Context, l *Lease) error {
		if err := waitForMutations(ctx, conn); err != nil {
			return err
		}
		for _, table := range append(schema.Derived(), schema.TablePurgeTargets) {
			// Not TRUNCATE, which cannot have a condition.
			if err := l.Alter(ctx, table, "DELETE", "1"); err != nil {
				return err
			}
		}
		// Of each record one clock counts from now on, whatever was taken out of the store before.
		if err := l.Alter(ctx, schema.TableConflicts, "DELETE", schema.OfWronglySuperseded(compared)); err != nil {
			return err
		}
		// What was damaged is gone with the rest.
		return l.Alter(ctx, schema.TableRollupLog, "DELETE", damaged)
	})
}

// Damage keeps queries of organizations away from the rollup of a source until a server has repaired it. organizations
// is SQL of a table with a column organization_id; where it has no rows, nothing is written.
func (l *Lease) Damage(ctx context.Context, source, organizations string) error {
	return l.writeDamage(ctx, source, sql.Select{
		Columns: []string{"arrayJoin(arrayPushBack(groupUniqArray(toString(organization_id)), '')) AS organization"},
		From:    sql.Query(sql.Text(organizations)), Having: "count() > 0",
	})
}

// take waits for its turn. With after it takes over a lease that gave no sign of life for so long; with 0 it has what
// was abandoned rebuilt first.
func take(ctx context.Context, conn driver.Conn, after time.Duration) (*Lease, error) {
	l := &Lease{entry: entry{conn: conn, writer: randomName(), lost: ErrLost}}
	for {
		state, err := snapshot.ReadLog(ctx, conn)
		if err != nil {
			return nil, err
		}
		silent := state.Now.Sub(state.LeasedAt)
		switch {
		case !state.Leased || after != 0 && silent > after:
			l.number = state.Next()
			l.fence = inLog("maxIf((tupleElement(latest, 1), tupleElement(latest, 2)), kind = 'lease') = (%d, %d)"+
				" AND maxIf(tupleElement(latest, 1), kind = 'commit') < %[1]d", l.number, l.writer)
			if err := write(ctx, conn, schema.LogLease, l.number, l.writer, unchanged(state)); err != nil {
				return nil, err
			}
			if err := waitForInserts(ctx, conn); err != nil {
				return nil, err
			}
			// How far records are refreshed does not change any more: every commit carries a condition that fails now.
			taken, err := snapshot.ReadLog(ctx, conn)
			if err != nil {
				return nil, err
			}
			l.until = taken.Until
			if err = l.check(ctx); err == nil {
				return l, nil
			}
			if !errors.Is(err, ErrLost) {
				return nil, err
			}
		case after == 0 && silent > abandoned:
			if err := Rebuild(ctx, conn, abandoned); err != nil {
				return nil, err
			}
		}
		if err := snapshot.Pause(ctx, leasePoll); err != nil {
			return nil, err
		}
	}
}

// run changes and releases: from then on the tables are refreshed up to until.
func (l *Lease) run(ctx context.Context, until time.Time, change func(context.Context, *Lease) error) error {
	changing, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	alive, stop := context.WithCancel(changing)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for snapshot.Pause(alive, signOfLife) == nil {
			// A sign that is lost is made up for by the next.
			if write(alive, l.conn, schema.LogLease, l.number, l.writer, l.fence) == nil && errors.Is(l.check(alive), ErrLost) {
				lose(ErrLost)
			}
		}
	}()
	err := snapshot.Pause(changing, nodePause)
	if err == nil {
		err = l.check(changing)
	}
	if err == nil {
		err = change(changing, l)
	}
	if err == nil {
		err = write(changing, l.conn, schema.LogLease, l.number, l.writer, l.fence)
	}
	if err == nil {
		err = l.check(changing)
	}
	stop()
	<-ended
	if context.Cause(changing) == ErrLost {
		return ErrLost
	}
	if err != nil {
		return err
	}
	// Releasing is not given up with the rest.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	return write(ctx, l.conn, schema.LogCommit, l.number+1, -until.UnixMilli(), l.fence)
}
