package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/clickhouse"
)

// versionsTimeout bounds what one scrape of the metrics may wait for the store.
const versionsTimeout = 2 * time.Second

var (
	buildDescription = prometheus.NewDesc("runlens_build_info",
		"1, with the version and the commit of this process.", []string{"version", "commit"}, nil)
	storeDescription = prometheus.NewDesc("runlens_store_info",
		"1, with the version of ClickHouse.", []string{"version"}, nil)
	uptimeDescription = prometheus.NewDesc("runlens_store_uptime_seconds",
		"Time since ClickHouse was started.", nil, nil)
)

// versions reports at every scrape what runs: an upgrade or a restart of either shows.
type versions struct{ store *clickhouse.Server }

func (v versions) Describe(out chan<- *prometheus.Desc) {
	out <- buildDescription
	out <- storeDescription
	out <- uptimeDescription
}

func (v versions) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(buildDescription, prometheus.GaugeValue, 1, version, commit())
	ctx, cancel := context.WithTimeout(context.Background(), versionsTimeout)
	defer cancel()
	// Readiness reports that the store does not answer.
	if engine, err := v.store.Version(ctx); err == nil {
		out <- prometheus.MustNewConstMetric(storeDescription, prometheus.GaugeValue, 1, engine)
	}
	if up, err := v.store.Uptime(ctx); err == nil {
		out <- prometheus.MustNewConstMetric(uptimeDescription, prometheus.GaugeValue, up.Seconds())
	}
}
