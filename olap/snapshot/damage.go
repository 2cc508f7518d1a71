package snapshot

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// damagedParts counts the parts that a start of ClickHouse put aside because they were damaged. Tables that need not
// survive a loss of power may have such parts after one.
const damagedParts = "SELECT table, count() AS parts FROM system.detached_parts" +
	" WHERE database = currentDatabase() AND reason IN ('broken', 'broken-on-start', 'covered-by-broken')" +
	" AND table NOT IN ('" + schema.TableInsertCounters + "', '" + schema.TableAPIKeyUses + "', '" +
	schema.TableUsageLog + "') GROUP BY table"

// DamagedParts returns how many parts of which tables ClickHouse found damaged and put aside, and did not get back.
func DamagedParts(ctx context.Context, conn driver.Conn) (map[string]uint64, error) {
	var found []struct {
		Table string `ch:"table"`
		Parts uint64 `ch:"parts"`
	}
	if err := conn.Select(OneThread(ctx), &found, damagedParts); err != nil {
		return nil, failure.Of("read damaged parts", err)
	}
	parts := map[string]uint64{}
	for _, f := range found {
		parts[f.Table] = f.Parts
	}
	return parts, nil
}

var damageDescription = prometheus.NewDesc("runlens_damaged_parts",
	"Parts that ClickHouse found damaged when it started and put aside, by table: their rows are missing.",
	[]string{"table"}, nil)

// DamageMetric is a prometheus.Collector of which tables have lost parts. ClickHouse itself goes on without them.
type DamageMetric struct{ Conn driver.Conn }

// Describe sends what the metric is.
func (d DamageMetric) Describe(out chan<- *prometheus.Desc) { out <- damageDescription }

// Collect sends the metric of each table that has lost parts; none where the store does not answer, as the readiness
// says.
func (d DamageMetric) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	parts, err := DamagedParts(ctx, d.Conn)
	if err != nil {
		return
	}
	for table, n := range parts {
		out <- prometheus.MustNewConstMetric(damageDescription, prometheus.GaugeValue, float64(n), table)
	}
}
