package rollup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A mergingConn leaves rows in the rollup that cancel out, and merges them after the statement.
type mergingConn struct {
	driver.Conn
	t      *testing.T
	merges int
}

func (c *mergingConn) around(sql string) func() {
	if !strings.Contains(sql, "rollup_runs") {
		return func() {}
	}
	exec := func(sql string) {
		if err := c.Conn.Exec(ctx, sql); err != nil {
			c.t.Error(err)
		}
	}
	exec("SYSTEM STOP MERGES rollup_runs")
	c.merges++
	for _, sign := range []string{"1", "-1"} {
		exec("INSERT INTO rollup_runs (" + rollupRow + ", sign) SELECT " +
			strings.Replace(rollupRow, "created_at", fmt.Sprintf("'2026-01-%02d 03:00:00'", 20+c.merges%10), 1) + ", " + sign +
			" FROM rollup_runs WHERE " + ofOneRun + " LIMIT 1")
	}
	return func() {
		exec("SYSTEM START MERGES rollup_runs")
		exec("OPTIMIZE TABLE rollup_runs FINAL")
	}
}

func (c *mergingConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	defer c.around(sql)()
	return c.Conn.Query(ctx, sql, args...)
}

func (c *mergingConn) QueryRow(ctx context.Context, sql string, args ...any) driver.Row {
	defer c.around(sql)()
	return c.Conn.QueryRow(ctx, sql, args...)
}

// Rows that cancel out, and their groups of zeros in projections, vanish by a merge. That is no damage.
func TestMergesAreNoDamage(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	load(t, store, 40, "RUNNING")
	all(t, store)
	conn := &mergingConn{Conn: store, t: t}
	if found, err := rollup.Check(ctx, conn); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if conn.merges == 0 {
		t.Error("nothing was merged")
	}
}
