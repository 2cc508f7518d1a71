package write_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// What is acknowledged survives a loss of power right after the acknowledgement: records, a checkpoint with all that
// it represents, and a refresh with its watermark. So it does when parts were merged and what they replaced is gone.
func TestPowerLossLosesNothingAcknowledged(t *testing.T) {
	disk := clickhousetest.NewDisk(t)
	dir := filepath.Join(disk.Dir, "data")
	conn := olaptest.EngineIn(t, dir).Conn()
	ctx := context.Background()
	retry := write.Retry{Logger: quiet.Logger, Patience: time.Minute}
	writer, log := write.NewWriter(conn, retry), checkpoint.NewLog(conn, retry)
	acknowledged := uint64(0)
	survives := func(when string, more func(driver.Conn)) {
		t.Helper()
		left := olaptest.EngineIn(t, filepath.Join(disk.LosePower(t, dir), "data"))
		defer left.Close()
		if n := records(t, left.Conn()); n != acknowledged {
			t.Errorf("%s: %d of %d acknowledged records are there", when, n, acknowledged)
		}
		// ClickHouse does not sync projections of what is inserted. It knows that they are broken, and reads the rows.
		var n, broken uint64
		const ofPerson = "SELECT uniqExact(attribution_id) FROM attributions" +
			" WHERE organization_id = 'acme' AND user_identifier = 'ada@example.com'"
		if err := left.Conn().QueryRow(ctx, ofPerson).Scan(&n); err != nil || n != acknowledged {
			t.Errorf("%s: %d of %d records of a person are there, %v", when, n, acknowledged, err)
		}
		const detached = "SELECT count() FROM system.detached_parts" +
			" WHERE database = currentDatabase() AND table NOT IN ('insert_counters', 'api_key_uses', 'usage_log')"
		if err := left.Conn().QueryRow(ctx, detached).Scan(&broken); err != nil || broken > 0 {
			t.Errorf("%s: %d parts are detached, %v", when, broken, err)
		}
		more(left.Conn())
	}
	nothing := func(driver.Conn) {}
	for _, size := range []int{1, 1000} {
		if err := writer.Write(ctx, inOneMonth(size)); err != nil {
			t.Fatal(err)
		}
		acknowledged += uint64(size)
		survives("after an insert", nothing)
	}

	if err := writer.Write(ctx, inOneMonth(10)); err != nil {
		t.Fatal(err)
	}
	acknowledged += 10
	if err := log.Save(ctx, "test", acknowledged); err != nil {
		t.Fatal(err)
	}
	survives("after a checkpoint", func(left driver.Conn) {
		var position uint64
		if _, _, err := checkpoint.NewLog(left, retry).Load(ctx, "test", &position); err != nil || position != acknowledged {
			t.Errorf("the checkpoint is at %d, want %d (%v)", position, acknowledged, err)
		}
	})

	if err := rollup.New(conn, quiet.Logger, 0).Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	const refreshed = "SELECT toUInt64(sum(records)) FROM rollup_attributions"
	survives("after a refresh", func(left driver.Conn) {
		var n uint64
		if err := left.QueryRow(ctx, refreshed).Scan(&n); err != nil || n != acknowledged {
			t.Errorf("the rollup has %d of %d records, %v", n, acknowledged, err)
		}
	})

	for _, table := range []string{"attributions", "rollup_attributions"} {
		// Dropping something removes what is replaced, at its end.
		for _, statement := range []string{"OPTIMIZE TABLE ? FINAL", "ALTER TABLE ? DROP PARTITION ID 'none'"} {
			if err := conn.Exec(ctx, strings.Replace(statement, "?", table, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	survives("after merges", func(left driver.Conn) {
		var n uint64
		if err := left.QueryRow(ctx, refreshed).Scan(&n); err != nil || n != acknowledged {
			t.Errorf("the rollup has %d of %d records, %v", n, acknowledged, err)
		}
	})
}
