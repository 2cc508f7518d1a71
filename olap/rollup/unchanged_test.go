package rollup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A statement whose FROM reads the rollup and whose WHERE reads the log takes the snapshot of the log after that of the
// rollup. While it is being analysed, between the two, it sleeps, and others write.
func TestLogIsReadAfterTheRollup(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	const row = "INSERT INTO rollup_runs (organization_id, run_id, sign) SELECT 'acme', generateUUIDv4(), 1"
	entry := func(kind, number string) string {
		return "INSERT INTO rollup_log (kind, latest) SELECT '" + kind + "', (" + number + ", 0, now64(3))"
	}
	execute(t, conn, row)
	for _, c := range []struct {
		name, begin, lease string
		written            []string
		want               int64
		changed            bool
	}{
		{name: "a row", begin: "5", lease: "8", written: []string{row}, want: 1},
		{name: "a batch and its row", begin: "5", lease: "8", written: []string{entry("begin", "6"), row}, changed: true},
		{name: "a batch during an inline delta", lease: "8", written: []string{entry("begin", "7"), row}, want: 3},
		{name: "a commit", begin: "7", lease: "8", written: []string{entry("commit", "8")}, want: 4},
		{name: "a lease", lease: "8", written: []string{entry("lease", "9")}, changed: true},
		{name: "damage", lease: "9", written: []string{"INSERT INTO rollup_log (kind, organization_id, source, latest)" +
			" SELECT 'damage', 'acme', 'runs', (11, 0, now64(3))"}, changed: true},
	} {
		type answer struct {
			rows int64
			err  error
		}
		answered := make(chan answer, 1)
		go func() {
			var a answer
			a.err = conn.QueryRow(ctx, "SELECT sum(n) FROM (SELECT sum(sign) AS n FROM rollup_runs) AS g"+
				" WHERE (SELECT sleep(3)) = 0 AND "+schema.RollupUnchanged(c.lease, "8", c.begin)).Scan(&a.rows)
			answered <- a
		}()
		awaitStatement(t, conn, "sleep(3)")
		time.Sleep(500 * time.Millisecond) // in which it resolves its FROM
		execute(t, conn, c.written...)
		a := <-answered
		changed := a.err != nil && strings.Contains(a.err.Error(), schema.LogChangedMessage)
		if changed != c.changed || !changed && (a.err != nil || a.rows != c.want) {
			t.Errorf("%s: %d rows, %v; want %d, or the log changed: %t", c.name, a.rows, a.err, c.want, c.changed)
		}
	}
}

// awaitStatement waits until a statement with a text is running.
func awaitStatement(t *testing.T, conn driver.Conn, text string) {
	t.Helper()
	for running := uint64(0); running == 0; {
		err := conn.QueryRow(ctx, "SELECT count() FROM system.processes WHERE position(query, '"+text+"') > 0"+
			" AND position(query, 'system.processes') = 0").Scan(&running)
		if err != nil {
			t.Fatal(err)
		}
	}
}
