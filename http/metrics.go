package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what the API tells an operator. No label has more values than the code knows.
type Metrics struct {
	requests *prometheus.CounterVec   // route, status
	seconds  *prometheus.HistogramVec // route
	limited  *prometheus.CounterVec   // limit
	engine   prometheus.Histogram
}

// From half a millisecond to about half a minute.
var latencyBuckets = prometheus.ExponentialBuckets(0.0005, 2, 17)

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_http_requests_total", Help: "Answered requests by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runlens_http_request_seconds", Help: "Time from a request's headers to its answer, by route.", Buckets: latencyBuckets,
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_http_limited_total", Help: "Requests answered 429, by the limit that was hit.",
		}, []string{"limit"}),
		engine: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "runlens_query_seconds", Help: "Time a query took in the query engine and in ClickHouse.", Buckets: latencyBuckets,
		}),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.limited, m.engine}
}

// Describe makes Metrics a prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(out)
	}
}

// Collect sends every metric.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(out)
	}
}

func (m *Metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
