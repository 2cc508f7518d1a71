package worker

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/ingest/normalize"
)

// A Status tells how a worker does. It is safe for concurrent use.
type Status struct {
	mu       sync.Mutex
	kinds    map[normalize.Kind]*KindStatus
	retries  int64
	lastDiff *ReconcileStatus
	now      func() time.Time
}

// A KindStatus tells how the copying of one kind does since the worker's start.
type KindStatus struct {
	CaughtUp   bool     `json:"caught_up"`
	LagSeconds *float64 `json:"lag_seconds"` // age of the newest instant up to which the source was read to its end; null before that
	// CertainUntil is the instant before which no row has changed that is not stored. Behind it, transactions
	// that are still open may commit rows with times in the past. Null when nothing is certain.
	CertainUntil *time.Time `json:"certain_until"`
	WaitsFor     string     `json:"waits_for,omitzero"` // the oldest of those transactions
	Stored       int64      `json:"stored"`             // records that ClickHouse acknowledged
	Batches      int64      `json:"batches"`
	Rejected     int64      `json:"rejected"`
	PerSecond    float64    `json:"stored_per_second"` // over the last minute
	seenUntil    time.Time
	minute       []sample
}

// A sample is what had been stored at a time.
type sample struct {
	at     time.Time
	stored int64
}

// A ReconcileStatus tells what the last full comparison found.
type ReconcileStatus struct {
	EndedAt  time.Time `json:"ended_at"`
	Compared int64     `json:"days_compared"` // days of organizations and kinds
	Differed int64     `json:"days_differed"`
	Repaired int64     `json:"records_copied_again"`
	Missing  int64     `json:"records_missing_in_source"` // stored, but gone from the source
	Deleted  int64     `json:"records_deleted"`
}

// A Report is a Status at one time.
type Report struct {
	Kinds     map[normalize.Kind]KindStatus `json:"kinds"`
	Retries   int64                         `json:"retries"`
	Reconcile *ReconcileStatus              `json:"last_reconcile"`
}

// rateWindow is the span of the rates.
const rateWindow = time.Minute

// NewStatus returns the status of a worker that has not begun; now is its clock.
func NewStatus(now func() time.Time) *Status {
	s := &Status{kinds: map[normalize.Kind]*KindStatus{}, now: now}
	for _, kind := range normalize.Kinds {
		s.kinds[kind] = &KindStatus{}
	}
	return s
}

// Report returns the status now.
func (s *Status) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Kinds: map[normalize.Kind]KindStatus{}, Retries: s.retries, Reconcile: s.lastDiff}
	now := s.now()
	for kind, k := range s.kinds {
		copied := *k
		if k.CaughtUp {
			lag := now.Sub(k.seenUntil).Seconds()
			copied.LagSeconds = &lag
		}
		k.trim(now)
		if len(k.minute) > 0 {
			copied.PerSecond = float64(k.Stored-k.minute[0].stored) / rateWindow.Seconds()
		}
		r.Kinds[kind] = copied
	}
	return r
}

func (k *KindStatus) trim(now time.Time) {
	for len(k.minute) > 0 && now.Sub(k.minute[0].at) > rateWindow {
		k.minute = k.minute[1:]
	}
}

// passed takes note that everything up to the begin of a pass was seen and stored, and what of it is certain.
func (s *Status) passed(kind normalize.Kind, began, certain time.Time, waitsFor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	k.CaughtUp, k.seenUntil = true, began
	k.CertainUntil, k.WaitsFor = nil, waitsFor
	if !certain.IsZero() {
		k.CertainUntil = &certain
	}
}

func (s *Status) stored(kind normalize.Kind, stored, rejected int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	now := s.now()
	k.trim(now)
	k.minute = append(k.minute, sample{now, k.Stored})
	k.Stored += int64(stored)
	k.Rejected += int64(rejected)
	k.Batches++
}

func (s *Status) retried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries++
}

func (s *Status) reconciled(r ReconcileStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastDiff = &r
}

var (
	lagMetric      = kindMetric("lag_seconds", "Age of the newest instant up to which the source was read to its end and stored.")
	certainMetric  = kindMetric("certain_until_timestamp_seconds", "Unix time before which no row has changed that is not stored; 0 when nothing is certain.")
	storedMetric   = kindMetric("stored_records_total", "Records that ClickHouse acknowledged.")
	batchesMetric  = kindMetric("batches_total", "Batches that ClickHouse acknowledged.")
	rejectedMetric = kindMetric("rejected_records_total", "Records that broke a rule.")
	retriesMetric  = prometheus.NewDesc("runlens_worker_retries_total", "Attempts that were made again after a failure of the source or the store.", nil, nil)
	differedMetric = prometheus.NewDesc("runlens_worker_reconcile_differed_days", "Days of organizations and kinds in which the last full comparison found a difference.", nil, nil)
	missingMetric  = prometheus.NewDesc("runlens_worker_reconcile_missing_records", "Stored records that the source no longer had at the last full comparison.", nil, nil)
)

func kindMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("runlens_worker_"+name, help, []string{"kind"}, nil)
}

// Describe is part of prometheus.Collector.
func (s *Status) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, out) }

// Collect is part of prometheus.Collector.
func (s *Status) Collect(out chan<- prometheus.Metric) {
	report := s.Report()
	for kind, k := range report.Kinds {
		if k.LagSeconds != nil {
			out <- prometheus.MustNewConstMetric(lagMetric, prometheus.GaugeValue, *k.LagSeconds, string(kind))
		}
		if k.CaughtUp {
			certain := 0.0
			if k.CertainUntil != nil {
				certain = float64(k.CertainUntil.UnixMicro()) / 1e6
			}
			out <- prometheus.MustNewConstMetric(certainMetric, prometheus.GaugeValue, certain, string(kind))
		}
		out <- prometheus.MustNewConstMetric(storedMetric, prometheus.CounterValue, float64(k.Stored), string(kind))
		out <- prometheus.MustNewConstMetric(batchesMetric, prometheus.CounterValue, float64(k.Batches), string(kind))
		out <- prometheus.MustNewConstMetric(rejectedMetric, prometheus.CounterValue, float64(k.Rejected), string(kind))
	}
	out <- prometheus.MustNewConstMetric(retriesMetric, prometheus.CounterValue, float64(report.Retries))
	if r := report.Reconcile; r != nil {
		out <- prometheus.MustNewConstMetric(differedMetric, prometheus.GaugeValue, float64(r.Differed))
		out <- prometheus.MustNewConstMetric(missingMetric, prometheus.GaugeValue, float64(r.Missing))
	}
}
