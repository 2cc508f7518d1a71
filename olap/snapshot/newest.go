package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// Newest returns the event clocks of the newest run and the newest attribution record of all organizations, zero where
// there is none. ClickHouse has them without reading rows.
func Newest(ctx context.Context, conn driver.Conn) (run, attribution time.Time, err error) {
	if run, err = newest(ctx, conn, schema.TableRuns, "created_at"); err == nil {
		attribution, err = newest(ctx, conn, schema.TableAttributions, "occurred_at")
	}
	return run, attribution, err
}

func newest(ctx context.Context, conn driver.Conn, table, clock string) (time.Time, error) {
	var rows uint64
	var at time.Time
	newest := sql.Select{Columns: []string{"count()", "max(" + clock + ")"}, From: ofStore(table)}
	if err := conn.QueryRow(ctx, newest.String()).Scan(&rows, &at); err != nil {
		return time.Time{}, failure.Of("read the newest row", err)
	}
	if rows == 0 {
		return time.Time{}, nil
	}
	return at.UTC(), nil
}

// scrapePatience bounds what one scrape of the metrics may wait for the store.
const scrapePatience = 2 * time.Second

var lagDescription = prometheus.NewDesc("runlens_ingest_lag_seconds",
	"Time since the event clock of the newest stored row, by table.", []string{"table"}, nil)

// LagMetric is a prometheus.Collector of how old the newest rows are at every scrape: it grows while nothing is copied.
type LagMetric struct{ Conn driver.Conn }

// Describe sends what the metric is.
func (l LagMetric) Describe(out chan<- *prometheus.Desc) { out <- lagDescription }

// Collect sends the metric of each table that has rows; none where the store does not answer, as the readiness says.
func (l LagMetric) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	run, attribution, err := Newest(ctx, l.Conn)
	if err != nil {
		return
	}
	for table, newest := range map[string]time.Time{schema.TableRuns: run, schema.TableAttributions: attribution} {
		if !newest.IsZero() {
			out <- prometheus.MustNewConstMetric(lagDescription, prometheus.GaugeValue, time.Since(newest).Seconds(), table)
		}
	}
}
