package rollup

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
)

// An entry of the rollup log gives the process that wrote it an exclusive right, for as long as a condition on the log
// is true. Numbers in the log only grow, so a right that was once lost never comes back, and one that is there now was
// there all the time since it was taken.
type entry struct {
	conn   driver.Conn
	number uint64
	writer int64  // a random name of the writer
	fence  string // the condition, as SQL
	lost   error  // what check returns when the condition is false
}

// check returns the entry's error lost when the right is gone.
func (e *entry) check(ctx context.Context) error {
	var valid bool
	if err := e.conn.QueryRow(ctx, "SELECT toBool("+e.fence+")").Scan(&valid); err != nil {
		return fmt.Errorf("rollup: read the rollup log: %w", err)
	}
	if !valid {
		return e.lost
	}
	return nil
}

// Alter changes rows of a table: change is DELETE or UPDATE with assignments, where the condition of the rows. It
// returns when every part is written again, projections included, on all replicas. Parts that are merged meanwhile are
// waited for. Where the right is lost before or meanwhile, nothing or not everything is changed and the error says so.
func (e *entry) Alter(ctx context.Context, table, change, where string) error {
	// Replicas evaluate the condition each for itself. What the subqueries read changes only with the right.
	statement := "ALTER TABLE " + table + " " + change + " WHERE (" + where + ") AND " + e.fence +
		" SETTINGS mutations_sync = 2, allow_nondeterministic_mutations = 1"
	// The name shows that the right is alive while the statement runs.
	named := clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()))
	if err := e.conn.Exec(named, statement); err != nil {
		return fmt.Errorf("rollup: change %s: %w", table, err)
	}
	return e.check(ctx)
}

// waitForInserts waits for the inserts into the log and into the rollup that run now. After it, every insert whose
// fence an earlier entry made false has ended or will find the fence false.
func waitForInserts(ctx context.Context, conn driver.Conn) error {
	var running []string
	err := conn.QueryRow(ctx, "SELECT groupArray(query_id) FROM system.processes WHERE startsWith(query_id, '"+
		snapshot.RefreshQueryPrefix+"')").Scan(&running)
	if err != nil {
		return fmt.Errorf("rollup: read the inserts that run: %w", err)
	}
	if len(running) == 0 {
		return nil
	}
	return wait(ctx, conn, "SELECT count() FROM system.processes WHERE query_id IN {running:Array(String)}",
		driver.NamedValue{Name: "running", Value: running})
}

// waitForMutations waits for what ClickHouse mutates: statements of a process that died may still run.
func waitForMutations(ctx context.Context, conn driver.Conn) error {
	return wait(ctx, conn, "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done")
}

// wait polls until a count is zero.
func wait(ctx context.Context, conn driver.Conn, count string, args ...any) error {
	for {
		var n uint64
		if err := conn.QueryRow(ctx, count, args...).Scan(&n); err != nil {
			return fmt.Errorf("rollup: wait: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := snapshot.Pause(ctx, claimPoll); err != nil {
			return err
		}
	}
}

// randomName is greater than 0.
func randomName() int64 {
	var b [8]byte
	rand.Read(b[:])
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1
}
