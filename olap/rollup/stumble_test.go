package rollup_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

var errStumbled = errors.New("one statement failed")

// A stumblingConn sends all statements but one.
type stumblingConn struct {
	driver.Conn
	left atomic.Int64 // statements before the one that fails
	of   string       // instead, the next statement for one row that has this
}

func (c *stumblingConn) stumbles() bool { return c.left.Add(-1) == -1 }

func (c *stumblingConn) Exec(ctx context.Context, sql string, args ...any) error {
	if c.stumbles() {
		return errStumbled
	}
	return c.Conn.Exec(ctx, sql, args...)
}

func (c *stumblingConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if c.stumbles() {
		return nil, errStumbled
	}
	return c.Conn.Query(ctx, sql, args...)
}

func (c *stumblingConn) Select(ctx context.Context, to any, sql string, args ...any) error {
	if c.stumbles() {
		return errStumbled
	}
	return c.Conn.Select(ctx, to, sql, args...)
}

func (c *stumblingConn) QueryRow(ctx context.Context, sql string, args ...any) driver.Row {
	if c.of != "" && strings.Contains(sql, c.of) {
		c.of = ""
		return noRow{}
	}
	if c.stumbles() {
		return noRow{}
	}
	return c.Conn.QueryRow(ctx, sql, args...)
}

type noRow struct{}

func (noRow) Err() error           { return errStumbled }
func (noRow) Scan(...any) error    { return errStumbled }
func (noRow) ScanStruct(any) error { return errStumbled }

// Each statement fails once, and the process goes on: no damage is taken for repaired, and none is forgotten.
func TestStatementsThatFailOnce(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	loadSmall(t, store, 8, "RUNNING")
	all(t, store)
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // a claim that could not be ended is taken over
	sample := olaptest.NewSample(16)
	for n := int64(0); ; n++ {
		if !sample.Try() {
			continue
		}
		execute(t, store, damages["a row missing"].statements...)
		conn := &stumblingConn{Conn: store}
		conn.left.Store(n)
		checker := rollup.NewChecker(conn, olaptest.Anyone, quiet)
		noted := false
		olaptest.Until(t, "the damage is repaired", func() bool {
			if _, err := checker.Step(ctx); err != nil && !errors.Is(err, errStumbled) {
				t.Fatal(err)
			}
			there := len(state(t, store).Damaged) > 0
			ended := noted && !there
			noted = noted || there
			return ended
		})
		if found := check(t, store); len(found) > 0 {
			t.Errorf("after statement %d failed the rollup is taken for repaired: %+v", n, found)
			steps(t, rollup.NewChecker(store, olaptest.Anyone, quiet), func() bool { return len(state(t, store).Damaged) > 0 })
			steps(t, rollup.NewChecker(store, olaptest.Anyone, quiet), func() bool { return len(state(t, store).Damaged) == 0 })
		}
		if conn.left.Load() >= 0 {
			if n < 20 {
				t.Errorf("repaired with %d statements", n)
			}
			return
		}
	}
}

// A repair that could not list its partitions has not ended.
func TestARepairThatCouldNotBegin(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	loadSmall(t, store, 8, "RUNNING")
	all(t, store)
	execute(t, store, damages["a row missing"].statements...)
	conn := &stumblingConn{Conn: store}
	conn.left.Store(1 << 32)
	checker := rollup.NewChecker(conn, olaptest.Anyone, quiet)
	steps(t, checker, func() bool { return len(state(t, store).Damaged) > 0 })
	conn.of = "FROM system.parts"
	if _, err := checker.Step(ctx); !errors.Is(err, errStumbled) {
		t.Fatal(err)
	}
	steps(t, checker, func() bool { return len(state(t, store).Damaged) == 0 })
	sound(t, store)
}

// What could not be written into the log is found again at once, and whoever waits for the claim gets it.
func TestDamageThatCouldNotBeReported(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	loadSmall(t, conn, 8, "RUNNING")
	all(t, conn)
	execute(t, conn, damages["a row missing"].statements...)
	failed := false
	checker := rollup.NewChecker(conn, func(ctx context.Context) (func(schema.OrganizationID) bool, error) {
		if !failed {
			failed = true
			return nil, errStumbled
		}
		return olaptest.Anyone(ctx)
	}, quiet)
	olaptest.Until(t, "the damage is found", func() bool {
		_, err := checker.Step(ctx)
		if err != nil && !errors.Is(err, errStumbled) {
			t.Fatal(err)
		}
		return err != nil
	})
	if s := state(t, conn); s.Refreshing {
		t.Errorf("the claim is held: %+v", s)
	}
	if _, err := checker.Step(ctx); err != nil {
		t.Fatal(err)
	}
	if s := state(t, conn); len(s.Damaged) == 0 {
		t.Errorf("the next step has not written the damage down: %+v", s.Damaged)
	}
}
