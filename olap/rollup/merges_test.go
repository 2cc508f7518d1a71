package rollup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

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
	execute(c.t, c.Conn, "SYSTEM STOP MERGES rollup_runs")
	c.merges++
	for _, sign := range []string{"1", "-1"} {
		execute(c.t, c.Conn, "INSERT INTO rollup_runs ("+rollupRow+", sign) SELECT "+
			strings.Replace(rollupRow, "created_at", fmt.Sprintf("'2026-01-%02d 03:00:00'", 20+c.merges%10), 1)+", "+sign+
			" FROM rollup_runs WHERE "+ofOneRun+" LIMIT 1")
	}
	return func() {
		execute(c.t, c.Conn, "SYSTEM START MERGES rollup_runs", "OPTIMIZE TABLE rollup_runs FINAL")
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
	conn := &mergingConn{Conn: refreshed(t, 40), t: t}
	if found, err := rollup.Check(ctx, conn); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if conn.merges == 0 {
		t.Error("nothing was merged")
	}
}
