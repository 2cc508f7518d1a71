package shared

import "github.com/prometheus/client_golang/prometheus"

var (
	upDescription = prometheus.NewDesc("runlens_redis_up",
		"1 while limits hold over all servers, 0 while Redis is away and this server applies its own.", nil, nil)
	localDescription = prometheus.NewDesc("runlens_redis_decided_alone_total",
		"Requests that this server admitted by its own limits because Redis was away.", nil, nil)
)

// Describe makes Store a prometheus.Collector.
func (s *Store) Describe(out chan<- *prometheus.Desc) { out <- upDescription; out <- localDescription }

// Collect sends the metrics.
func (s *Store) Collect(out chan<- prometheus.Metric) {
	up := 1.0
	if s.away.Load() {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(upDescription, prometheus.GaugeValue, up)
	out <- prometheus.MustNewConstMetric(localDescription, prometheus.CounterValue, float64(s.local.Load()))
}
