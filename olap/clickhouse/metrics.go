package clickhouse

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapePatience bounds what one scrape of the metrics may wait for the store.
const scrapePatience = 2 * time.Second

var (
	versionDescription = prometheus.NewDesc("runlens_store_info",
		"1, with the version of ClickHouse.", []string{"version"}, nil)
	uptimeDescription = prometheus.NewDesc("runlens_store_uptime_seconds",
		"Time since ClickHouse was started.", nil, nil)
)

// Describe makes Server a prometheus.Collector of what runs: an upgrade or a restart shows.
func (s *Server) Describe(out chan<- *prometheus.Desc) {
	out <- versionDescription
	out <- uptimeDescription
}

// Collect asks the store, and sends nothing where it does not answer, as the readiness says.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	if version, err := s.Version(ctx); err == nil {
		out <- prometheus.MustNewConstMetric(versionDescription, prometheus.GaugeValue, 1, version)
	}
	if up, err := s.Uptime(ctx); err == nil {
		out <- prometheus.MustNewConstMetric(uptimeDescription, prometheus.GaugeValue, up.Seconds())
	}
}
