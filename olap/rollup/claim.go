package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// claimAge is the age at which a claim is taken for that of a process that died, where none of its statements runs.
// A claim that is taken over too early costs work and nothing else.
var claimAge = 10 * time.Second // shorter only in tests

var (
	// ErrLost is the error of a batch or a change that another process took over, because this one was paused for so long.
	// What a batch wrote stays. A change is not complete; it may be made again.
	ErrLost = errors.New("rollup: the claim was lost: " +
		"this process was paused for so long that another one took over; run the command again")
	// errClaimed is the error of a batch that another refresher is working on.
	errClaimed = errors.New("rollup: another process refreshes the rollup")
)

// A claim is the exclusive right to write to the rollup: one refresh batch, comparison or Change at a time, of one
// process. It leaves queries and their use of the rollup alone.
//
// A claim is an entry of the kind begin with a number and the claimant's random name, which is negative for a Change.
// It is valid while no begin is greater than (number, name), and since it began nothing was committed and no lease was
// taken, as programs of the first release do.
//
//  1. Claim. The number is one more than the greatest in the log. The insert carries the condition that the log is
//     still as it was read. Then the inserts that run are waited for and the condition is read again: of several
//     claims that have one number the one with the greatest name is valid. A crash leaves a claim without statements:
//     see 4.
//  2. Write. Every statement computes the difference between what its records are in the source and what the rollup has
//     of them *when it runs*, and writes that difference. It carries the fence, which ClickHouse evaluates when the
//     statement begins. A statement that changes one partition writes one part, which is there completely or not at
//     all. So whatever a crash, a lost connection or a time-out leaves, the same statement run again writes what is
//     still absent and nothing else. No statement relies on deduplication tokens.
//  3. Commit. The entry commit with the claim's number moves the watermark, under the same fence. Before it the
//     watermark is the old one, and queries compute what was stored since, whatever of it is in the rollup already. A
//     claim that moves no watermark ends with an entry begin of the greatest name: a commit would say that a refresher
//     knows how far the store's clock was set back.
//  4. Take over. A claim of claimAge none of whose statements runs is replaced by one with a greater number, as in 1.
//     The old one is lost by that: what its process sends later writes nothing. What it sent before is waited for; of
//     mutations, which outlive their statements, that is left to who writes what they may take out (Change).
//
// This depends on two properties of ClickHouse: a statement is listed in system.processes before it evaluates its
// conditions, and a part becomes visible by one rename (TestRefreshSurvivesKillsAtRenames, TestClaimsExcludeEachOther).
//
// Numbers in the log only grow, so a claim that was once lost never comes back, and one that is valid now was so all
// the time since it was taken.
type claim struct {
	conn   driver.Conn
	number uint64
	writer int64     // the claimant's name
	fence  string    // the condition that the claim is valid, as SQL
	until  time.Time // the watermark while it is valid
}

// check returns ErrLost when the claim is not valid.
func (c *claim) check(ctx context.Context) error {
	var valid bool
	if err := c.conn.QueryRow(ctx, "SELECT toBool("+c.fence+")").Scan(&valid); err != nil {
		return fmt.Errorf("rollup: read the rollup log: %w", err)
	}
	if !valid {
		return ErrLost
	}
	return nil
}

// randomName is greater than 0.
func randomName() int64 { return rand.Int64() | 1 }

// takeClaim does 1, and 4 where that is due: a change takes over from everybody but a change. The error is errClaimed
// where another process has the claim.
func takeClaim(ctx context.Context, conn driver.Conn, state snapshot.Log, name int64) (*claim, error) {
	if state.Refreshing && state.Refresher != name && (name > 0 || state.Changing()) {
		if state.Now.Sub(state.BegunAt).Abs() < claimAge {
			return nil, errClaimed
		}
		if inserts, err := snapshot.ReadInserts(ctx, conn); err != nil || inserts.Refreshing {
			return nil, cmp.Or(err, errClaimed)
		}
	}
	c := &claim{conn: conn, number: state.Next(), writer: name, until: state.Until}
	claimed := inLog("maxIf((tupleElement(latest, 1), tupleElement(latest, 2)), kind = 'begin') = (%d, %d)", c.number,
		c.writer)
	c.fence = "(" + sql.All(claimed, unchanged(state)) + ")"
	free := sql.All(inLog("maxIf(tupleElement(latest, 1), kind = 'begin') = %d", state.Begun), unchanged(state))
	if err := write(ctx, conn, schema.LogBegin, c.number, c.writer, free); err != nil {
		return nil, err
	}
	// After it, every insert into the log and into the rollup whose fence an earlier entry made false has ended or will
	// find the fence false.
	if err := snapshot.AwaitStatements(ctx, conn, snapshot.RefreshQueryPrefix); err != nil {
		return nil, fmt.Errorf("rollup: %w", err)
	}
	if err := c.check(ctx); err != nil {
		if errors.Is(err, ErrLost) {
			return nil, errClaimed
		}
		return nil, err
	}
	return c, nil
}

// commit ends the batch: the rollup has every record none of whose rows was stored after an instant.
func (c *claim) commit(ctx context.Context, until time.Time) error {
	if err := write(ctx, c.conn, schema.LogCommit, c.number, -until.UnixMilli(), c.fence); err != nil {
		return err
	}
	state, err := snapshot.ReadLog(ctx, c.conn)
	if err != nil {
		return err
	}
	if state.Committed != c.number { // greater where another one has committed since: that says nothing of this batch
		return ErrLost
	}
	return nil
}

// end ends the claim and leaves the watermark where it is, also when ctx is done.
func (c *claim) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	return write(ctx, c.conn, schema.LogBegin, c.number, schema.LogNobody, c.fence)
}
