package rollup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/rollup"
)

// A mergingConn leaves rows in the rollup that cancel out before each comparison, and merges them after it.
type mergingConn struct {
	driver.Conn
	t      *testing.T
	merges int
}

func (c *mergingConn) Select(ctx context.Context, to any, sql string, args ...any) error {
	if !strings.Contains(sql, "rollup_runs") {
		return c.Conn.Select(ctx, to, sql, args...)
	}
	execute(c.t, c.Conn, "SYSTEM STOP MERGES rollup_runs")
	c.merges++
	for _, sign := range []string{"1", "-1"} {
		execute(c.t, c.Conn, "INSERT INTO rollup_runs ("+rollupRow+", sign) SELECT "+
			strings.Replace(rollupRow, "created_at", fmt.Sprintf("'2026-01-%02d 03:00:00'", 20+c.merges%10), 1)+", "+sign+
			" FROM rollup_runs WHERE "+ofOneRun+" LIMIT 1")
	}
	defer execute(c.t, c.Conn, "SYSTEM START MERGES rollup_runs", "OPTIMIZE TABLE rollup_runs FINAL")
	return c.Conn.Select(ctx, to, sql, args...)
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
