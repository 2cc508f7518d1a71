package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what the API reports to an operator. No label has more values than the code knows.
type Metrics struct {
	requests *prometheus.CounterVec   // route, status
	seconds  *prometheus.HistogramVec // route
	limited  *prometheus.CounterVec   // limit
	stages   *prometheus.HistogramVec // stage
}

// The stages of a query, in their order.
const (
	stageBody      = "body"
	stageAuthorize = "authorize"
	stageParse     = "parse"
	stageEngine    = "engine"
	stageEncode    = "encode"
)

// From an eighth of a millisecond to about half a minute.
var latencyBuckets = prometheus.ExponentialBuckets(0.000125, 2, 19)

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_http_requests_total", Help: "Answered requests by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runlens_http_request_seconds", Help: "Time from a request's headers to its answer, by " +
				"route.", Buckets: latencyBuckets,
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_http_limited_total", Help: "Requests answered 429, by the limit that was hit.",
		}, []string{"limit"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runlens_query_stage_seconds", Help: "Time of the stages of a query: reading the body, checking the key, " +
				"parsing, the query engine with ClickHouse, encoding.",
			Buckets: latencyBuckets,
		}, []string{"stage"}),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.limited, m.stages}
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

// stage begins a stage of a query; the function it returns ends it.
func (m *Metrics) stage(name string) (end func()) {
	began := time.Now()
	return func() { m.stages.WithLabelValues(name).Observe(time.Since(began).Seconds()) }
}
