package rollup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	claimPoll = 50 * time.Millisecond
	// signOfLife is the pause between two signs of life of a change; well below claimAge.
	signOfLife = 4 * time.Second
	// endPatience bounds how long ending a claim takes, which is not given up with the rest.
	endPatience = 10 * time.Second
)

// A Change takes records out of the store, or otherwise alters what was refreshed, under a claim (claim has the
// protocol). What it changes in the rollup of some organizations is damage until it ends. Queries of all others use the
// rollup meanwhile; nobody refreshes it.
//
//  1. Claim. A refresh batch or a comparison that runs is taken over at once: it is made again later. Another change is
//     waited for. A crash leaves a claim without statements, which is taken over after claimAge.
//  2. Damage. Entries of the organizations are written, so that their queries read base tables, and begin again where
//     they found no entry in their own snapshot (schema.RollupUnchanged). A crash leaves the entries: any server's
//     checker makes the rollup what the sources say then, and takes them out (repair).
//  3. Change. Every statement that changes rows goes through Alter. It carries the fence, a condition on the log that
//     ClickHouse evaluates for each part when it rewrites that part, not when it accepts the statement: a statement
//     that was sent, queued or interrupted under a claim that is lost by then changes nothing. After each statement the
//     log is read: only a claim that is valid then proves that the statement did all of its work. A crash leaves a
//     change that is made in part, which is its caller's to make again; and see 2.
//  4. Sign of life. The entry of the claim is written again with the time. Who finds that the claim is lost cancels the
//     change with ErrLost.
//  5. End. An entry of damage of no organization says that what was answered meanwhile is out of date (snapshot.Same),
//     also where the change failed. A crash before: see 2, a repair begins with such an entry. Then the entries are
//     taken out, where the change left the rollup as if the records had never been there, and the claim ends. A crash
//     in between: the rest of them is repaired, which finds nothing.
//
// What ClickHouse mutates goes on when it starts again, and no statement shows it. A part that it began to write again
// under a valid fence replaces the old one when the claim is lost. So whoever writes to the rollup what a change may
// take out in that way waits for mutations first, under a claim of its own: a repair of what was damaged, and, since a
// rebuild damages nothing but takes the watermark back to zero, the refresh batch that begins there.
type Change struct {
	*claim
	// damaged are the sources whose entries are taken out at the end.
	damaged []string
}

// WithChange makes a change. It has to call Damage before it changes what the rollup rests on. When it fails, the
// organizations that it damaged are answered from base tables until they are repaired. The error is ErrLost when the
// claim was lost; then the change is not complete.
func WithChange(ctx context.Context, conn driver.Conn, change func(context.Context, *Change) error) error {
	c, err := begin(ctx, conn, false)
	if err != nil {
		return err
	}
	return c.run(ctx, change)
}

// Damage keeps queries of organizations away from the rollup of every source until the change ends. organizations is
// SQL of a table with a column organization_id.
func (c *Change) Damage(ctx context.Context, organizations string) error {
	named := sql.Query(sql.Text(organizations))
	for _, t := range schema.RollupTables {
		before, err := c.count(ctx, sql.Select{
			Columns: []string{"count()"}, From: refreshed(schema.TableRollupLog),
			Where: []string{damaged, "source = '" + t.Source + "'", "organization_id IN" +
				sql.In(sql.Select{Columns: []string{"organization_id"}, From: named})},
		})
		if err != nil {
			return err
		}
		if before == 0 { // else there is something to repair beside the change
			c.damaged = append(c.damaged, t.Source)
		}
		err = c.writeDamage(ctx, t.Source, true, sql.Select{
			Columns: []string{"arrayJoin(arrayPushBack(groupUniqArray(toString(organization_id)), '')) AS organization"},
			From:    named,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// LeaveDamaged has the rollup of a source repaired after the change, if there are any organizations, which is SQL as
// for Damage.
func (c *Change) LeaveDamaged(ctx context.Context, source, organizations string) error {
	n, err := c.count(ctx, sql.Select{Columns: []string{"count()"}, From: sql.Query(sql.Text(organizations))})
	if n > 0 {
		c.damaged = slices.DeleteFunc(c.damaged, func(s string) bool { return s == source })
	}
	return err
}

// Again is a stamp with which rows are refreshed again after the change: an instant, or later where the store's clock
// was set back and that is not after the watermark.
func (c *Change) Again(at time.Time) time.Time {
	if first := c.until.Add(time.Millisecond); first.After(at) {
		return first
	}
	return at
}

func (c *Change) count(ctx context.Context, counted sql.Select) (n uint64, err error) {
	if err = c.conn.QueryRow(ctx, counted.String()).Scan(&n); err != nil {
		err = fmt.Errorf("rollup: read what a change damages: %w", err)
	}
	return n, err
}

// Rebuild empties the rollup, so that it is built from its sources again. Queries read base tables until then.
func Rebuild(ctx context.Context, conn driver.Conn) error {
	for {
		c, err := begin(ctx, conn, true)
		if err != nil {
			return err
		}
		state, err := snapshot.ReadLog(ctx, conn)
		if err != nil {
			return errors.Join(err, c.end(ctx))
		}
		if state.Leased || state.Until.UnixMilli() != 0 {
			// From this commit on nobody reads the rollup. The next claim empties it, unless it was built again meanwhile.
			if err := c.commit(ctx, time.UnixMilli(0)); err != nil && !errors.Is(err, ErrLost) {
				return err
			}
			continue
		}
		return c.run(ctx, func(ctx context.Context, c *Change) error { return c.empty(ctx) })
	}
}

// empty takes everything out of the rollup, and what else a purge may have left. Queries that read the watermark of
// before find an entry of damage.
func (c *Change) empty(ctx context.Context) error {
	if err := waitForMutations(ctx, c.conn); err != nil {
		return err
	}
	if err := c.damage(ctx, "", true); err != nil {
		return err
	}
	for _, table := range append(schema.Derived(), schema.TablePurgeTargets) {
		// Not TRUNCATE, which cannot have a condition.
		if err := c.Alter(ctx, table, "DELETE", "1"); err != nil {
			return err
		}
	}
	// Of each record one clock counts from now on, whatever was taken out of the store before.
	wrong := schema.SupersededAmong(schema.WronglySuperseded(compared))
	if err := c.Alter(ctx, schema.TableConflicts, "DELETE", wrong); err != nil {
		return err
	}
	// What was damaged is gone with the rest.
	return c.Alter(ctx, schema.TableRollupLog, "DELETE", damaged)
}

// begin does 1. What a lease left is rebuilt first, or by the caller.
func begin(ctx context.Context, conn driver.Conn, rebuilding bool) (*Change, error) {
	for {
		state, err := snapshot.ReadLog(ctx, conn)
		switch {
		case err != nil:
		case state.Number == 0:
			err = writeFirst(ctx, conn, state)
		case !state.Leased || rebuilding && abandonedLease(state):
			var c *claim
			if c, err = takeClaim(ctx, conn, state, -randomName()); err == nil {
				return &Change{claim: c}, nil
			}
		case abandonedLease(state):
			err = Rebuild(ctx, conn)
		}
		if err != nil && !errors.Is(err, errClaimed) {
			return nil, err
		}
		if err := snapshot.Pause(ctx, claimPoll); err != nil {
			return nil, err
		}
	}
}

// run does 3 to 5.
func (c *Change) run(ctx context.Context, change func(context.Context, *Change) error) error {
	changing, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	alive, stop := context.WithCancel(changing)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for snapshot.Pause(alive, signOfLife) == nil {
			// A sign that is lost is made up for by the next.
			if c.sign(alive) == nil && errors.Is(c.check(alive), ErrLost) {
				lose(ErrLost)
			}
		}
	}()
	err := change(changing, c)
	if err == nil {
		err = c.takeOut(changing)
	}
	stop()
	<-ended
	if context.Cause(changing) == ErrLost {
		err = ErrLost
	} else if endErr := c.end(ctx); err == nil { // however the change ended
		err = endErr
	}
	if err != nil {
		c.outdate(ctx)
	}
	return err
}

// outdate writes the entry of 5 after a failure. The claim has ended or is lost: of what was sent under it, what is not
// done when mutations were waited for is not going to be. If this fails too, a repair writes the entry, later.
func (c *Change) outdate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*endPatience)
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, endPatience)
	defer stop()
	_ = waitForMutations(waiting, c.conn)
	_ = outdate(ctx, c.conn, c.number)
}

// sign is 4.
func (c *Change) sign(ctx context.Context) error {
	return write(ctx, c.conn, schema.LogBegin, c.number, c.writer, c.fence)
}

// takeOut is 5, but for the end of the claim.
func (c *Change) takeOut(ctx context.Context) error {
	if err := c.damage(ctx, "", true); err != nil || len(c.damaged) == 0 {
		return err
	}
	return c.Alter(ctx, schema.TableRollupLog, "DELETE", fmt.Sprintf("%s AND source IN ('%s') AND "+
		"tupleElement(latest, 1) = %d", damaged, strings.Join(c.damaged, "', '"), c.number))
}
