package conns

import "github.com/prometheus/client_golang/prometheus"

var (
	openDescription    = prometheus.NewDesc("runlens_connections_open", "Connections to the API.", nil, nil)
	refusedDescription = prometheus.NewDesc("runlens_connections_refused_total",
		"Connections that were closed at once, by the cap that was reached.", []string{"cap"}, nil)
	displacedDescription = prometheus.NewDesc("runlens_connections_displaced_total",
		"Connections that were closed to make room for others.", nil, nil)
)

// Describe makes Listener a prometheus.Collector of open and refused connections.
func (l *Listener) Describe(out chan<- *prometheus.Desc) {
	out <- openDescription
	out <- refusedDescription
	out <- displacedDescription
}

// Collect sends every metric.
func (l *Listener) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(openDescription, prometheus.GaugeValue, float64(l.Open()))
	for _, by := range []string{CapAll, CapPerAddress} {
		out <- prometheus.MustNewConstMetric(refusedDescription, prometheus.CounterValue, float64(l.Refused(by)), by)
	}
	out <- prometheus.MustNewConstMetric(displacedDescription, prometheus.CounterValue, float64(l.Displaced()))
}
