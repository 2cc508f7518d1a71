package snapshot_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

// The age of the watermark and the damages are those of the log, whoever keeps the rollup, and as they were last while
// the store does not answer.
func TestRollupMetric(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	metric := snapshot.RollupMetric(conn)
	const hour = 3600.
	want := func(when string, atLeast, damages float64) {
		t.Helper()
		registry := prometheus.NewRegistry()
		registry.MustRegister(metric)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		age, hasAge := got["runlens_rollup_age_seconds"]
		if !hasAge || age < atLeast || age >= atLeast+hour || got["runlens_rollup_damages"] != damages {
			t.Errorf("%s: %v, want an age of %v or a little more, and %v damages", when, got, atLeast, damages)
		}
	}
	exec := func(statement string) {
		t.Helper()
		if err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}

	want("before the first refresh", 0, 0)
	exec("INSERT INTO rollup_log (kind, latest) SELECT 'commit'," +
		" (1, -toUnixTimestamp64Milli(now64(3) - INTERVAL 2 HOUR), now64(3))")
	want("after one of two hours ago", 2*hour, 0)
	exec("INSERT INTO rollup_log (kind, organization_id, source, latest) SELECT 'damage'," +
		" 'acme', 'runs', (2, 0, now64(3))")
	want("with a damage", 2*hour, 1)
	exec("RENAME TABLE rollup_log TO rollup_log_away")
	want("while the log can't be read", 2*hour, 1)
}
