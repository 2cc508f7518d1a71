package push

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the inserts of lanes.
type Metrics struct{ inserts *prometheus.CounterVec }

// NewMetrics returns Metrics for a registry.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "runlens_push_inserts_total",
		Help: "Inserts of pushed records by result: stored or failed. One has the records of all requests that waited.",
	}, []string{"result"})}
}

// Describe makes Metrics a prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { m.inserts.Describe(out) }

// Collect sends every metric.
func (m *Metrics) Collect(out chan<- prometheus.Metric) { m.inserts.Collect(out) }

func (m *Metrics) inserted(err error) {
	result := "stored"
	if err != nil {
		result = "failed"
	}
	m.inserts.WithLabelValues(result).Inc()
}
