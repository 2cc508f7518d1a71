package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cost"
)

// Metrics are what the API reports to an operator. No label has more values than the code knows.
type Metrics struct {
	requests *prometheus.CounterVec   // route, status
	seconds  *prometheus.HistogramVec // route
	limited  *prometheus.CounterVec   // limit
	stages   *prometheus.HistogramVec // stage

	strategies *prometheus.CounterVec // reads, delta, reason
	refuted    *prometheus.CounterVec // assumption
	statements prometheus.Counter
	rowsRead   prometheus.Counter
	records    *prometheus.CounterVec // result
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
		strategies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_query_strategies_total",
			Help: "Answered queries by what they read, how they had the delta, and why no faster strategy was used.",
		}, []string{"reads", "delta", "reason"}),
		refuted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_query_refuted_total",
			Help: "Assumptions of query plans that did not hold, so that the query was planned again.",
		}, []string{"assumption"}),
		statements: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "runlens_query_statements_total", Help: "Statements that queries executed in ClickHouse.",
		}),
		rowsRead: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "runlens_query_rows_read_total", Help: "Rows that the statements of queries read in ClickHouse.",
		}),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runlens_push_records_total", Help: "Pushed lines by result: stored or rejected.",
		}, []string{"result"}),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.limited, m.stages, m.strategies, m.refuted,
		m.statements, m.rowsRead, m.records}
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

// took counts what the statements of a query took.
func (m *Metrics) took(c cost.Cost) {
	m.statements.Add(float64(c.Statements))
	m.rowsRead.Add(float64(c.Rows))
}

// answered counts how a query was answered.
func (m *Metrics) answered(s olap.Strategy) {
	m.strategies.WithLabelValues(s.Reads, s.Delta, s.Reason).Inc()
	for _, assumption := range s.Refuted {
		m.refuted.WithLabelValues(assumption).Inc()
	}
}

// pushed counts records that were pushed.
func (m *Metrics) pushed(p *pushed) {
	m.records.WithLabelValues("stored").Add(float64(p.Stored))
	m.records.WithLabelValues("rejected").Add(float64(p.Rejected))
}

// stage begins a stage of a query; the function it returns ends it.
func (m *Metrics) stage(name string) (end func()) {
	began := time.Now()
	return func() { m.stages.WithLabelValues(name).Observe(time.Since(began).Seconds()) }
}

var runningDescription = prometheus.NewDesc("runlens_queries_running", "Queries being answered.", nil, nil)

// Describe makes Server a prometheus.Collector of the queries being answered.
func (s *Server) Describe(out chan<- *prometheus.Desc) { out <- runningDescription }

// Collect sends the metric.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	running := 0
	for _, c := range s.concurrency {
		running += c.Running()
	}
	out <- prometheus.MustNewConstMetric(runningDescription, prometheus.GaugeValue, float64(running))
}
