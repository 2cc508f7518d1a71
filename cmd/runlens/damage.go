package main

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/snapshot"
)

// damageTimeout bounds how long one search for damaged parts waits for the store.
const damageTimeout = 2 * time.Second

var damageDescription = prometheus.NewDesc("runlens_damaged_parts",
	"Parts that ClickHouse found damaged when it started and put aside, by table: their rows are missing.",
	[]string{"table"}, nil)

// damage reports at every scrape which tables have lost parts. ClickHouse itself goes on without them.
type damage struct{ conn driver.Conn }

func (d damage) Describe(out chan<- *prometheus.Desc) { out <- damageDescription }

func (d damage) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), damageTimeout)
	defer cancel()
	parts, err := snapshot.DamagedParts(ctx, d.conn)
	if err != nil {
		return // readiness reports that the store does not answer
	}
	for table, n := range parts {
		out <- prometheus.MustNewConstMetric(damageDescription, prometheus.GaugeValue, float64(n), table)
	}
}
