package main

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/snapshot"
)

// lagTimeout bounds what one scrape of the metrics may wait for the store.
const lagTimeout = 2 * time.Second

var lagDescription = prometheus.NewDesc("runlens_ingest_lag_seconds",
	"Time since the event clock of the newest stored row, by table.", []string{"table"}, nil)

// ingestLag reports at every scrape how old the newest rows are: it grows while nothing is copied.
type ingestLag struct{ conn driver.Conn }

func (l ingestLag) Describe(out chan<- *prometheus.Desc) { out <- lagDescription }

func (l ingestLag) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lagTimeout)
	defer cancel()
	run, attribution, err := snapshot.Newest(ctx, l.conn)
	if err != nil {
		return // readiness reports that the store does not answer
	}
	for table, newest := range map[string]time.Time{"runs": run, "attributions": attribution} {
		if !newest.IsZero() {
			out <- prometheus.MustNewConstMetric(lagDescription, prometheus.GaugeValue, time.Since(newest).Seconds(), table)
		}
	}
}
