package rollup_test

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/rollup"
)

// A program of the first release that died while it changed something left a lease: whatever it left of the rollup is
// built again, by a refresher or by whoever changes something.
func TestLeaseIsTakenOver(t *testing.T) {
	for name, next := range map[string]func(driver.Conn) error{
		"a refresher": func(conn driver.Conn) error { return rollup.New(conn, quiet, 0).Refresh(ctx) },
		"a change": func(conn driver.Conn) error {
			return rollup.WithChange(ctx, conn, func(ctx context.Context, _ *rollup.Change) error { return nil })
		},
		"a rebuild": func(conn driver.Conn) error { return rollup.Rebuild(ctx, conn) },
	} {
		t.Run(name, func(t *testing.T) {
			conn := refreshed(t, 40)
			lease := func(ago string) {
				t.Helper()
				if err := conn.Exec(ctx, "INSERT INTO rollup_log (kind, latest) SELECT 'lease', (max(tupleElement(latest, 1)) + 1,"+
					" 7, now64(3) - toIntervalSecond("+ago+")) FROM rollup_log"); err != nil {
					t.Fatal(err)
				}
			}
			lease("10") // it is alive
			if err := conn.Exec(ctx, "ALTER TABLE rollup_runs DELETE WHERE organization_id = 'acme'"+
				" SETTINGS mutations_sync = 2"); err != nil {
				t.Fatal(err)
			}
			if more, err := rollup.New(conn, quiet, 0).Step(ctx); more || err != nil || !state(t, conn).Leased {
				t.Errorf("a refresher ended the lease: %v, %v", more, err)
			}
			lease("121")
			if err := next(conn); err != nil {
				t.Error(err)
			}
			if s := state(t, conn); s.Leased {
				t.Errorf("%+v", s)
			}
			kept(t, conn, 80)
		})
	}
}
