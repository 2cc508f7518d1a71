package push

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the inserts of lanes, by their results.
type Metrics struct{ *prometheus.CounterVec }

// NewMetrics returns Metrics for a registry.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "runlens_push_inserts_total",
		Help: "Inserts of pushed records by result: stored or failed. One has the records of all requests that waited.",
	}, []string{"result"})}
}

func (m *Metrics) inserted(err error) {
	result := "stored"
	if err != nil {
		result = "failed"
	}
	m.WithLabelValues(result).Inc()
}
