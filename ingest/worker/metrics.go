package worker

import "github.com/prometheus/client_golang/prometheus"

var (
	lagMetric = kindMetric("lag_seconds",
		"Age of the newest instant up to which the source was read to its end and stored.")
	certainMetric = kindMetric("certain_until_timestamp_seconds",
		"Unix time before which no row has changed that is not stored; 0 when nothing is certain.")
	storedMetric   = kindMetric("stored_records_total", "Records that ClickHouse acknowledged.")
	batchesMetric  = kindMetric("batches_total", "Batches that ClickHouse acknowledged.")
	rejectedMetric = kindMetric("rejected_records_total", "Records that broke a rule.")
	purgedMetric   = kindMetric("purged_records_total",
		"Records that stay out, and runs stored without their initiator, because the person was purged.")
	retriesMetric = prometheus.NewDesc("runlens_worker_retries_total",
		"Attempts that were made again after a failure of the source or the store.", nil, nil)
	differedMetric = prometheus.NewDesc("runlens_worker_reconcile_differed_days",
		"Days of organizations and kinds in which the last full comparison found a difference.", nil, nil)
	replacedMetric = prometheus.NewDesc("runlens_worker_reconcile_replaced_records_total",
		"Stored records that full comparisons replaced because the source did not have their version.", nil, nil)
	failuresMetric = prometheus.NewDesc("runlens_worker_reconcile_failures",
		"Attempts at a full comparison that failed since the last one that ended.", nil, nil)
	ageMetric = prometheus.NewDesc("runlens_worker_reconcile_age_seconds",
		"Time since the last full comparison ended, or since the first one began.", nil, nil)
	refusedMetric = prometheus.NewDesc("runlens_worker_reconcile_refused_deletions",
		"Records missing in the source that the last full comparison did not delete because they were too many.", nil, nil)
	missingMetric = prometheus.NewDesc("runlens_worker_reconcile_missing_records",
		"Stored records that the source no longer had at the last full comparison.", nil, nil)
)

func kindMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("runlens_worker_"+name, help, []string{"kind"}, nil)
}

// Describe is part of prometheus.Collector. It sends what Collect may send later, too.
func (s *Status) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{lagMetric, certainMetric, storedMetric, batchesMetric, rejectedMetric,
		purgedMetric, retriesMetric, differedMetric, replacedMetric, failuresMetric, ageMetric, refusedMetric,
		missingMetric} {
		out <- metric
	}
}

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
		out <- prometheus.MustNewConstMetric(purgedMetric, prometheus.CounterValue, float64(k.Purged), string(kind))
	}
	out <- prometheus.MustNewConstMetric(retriesMetric, prometheus.CounterValue, float64(report.Retries))
	out <- prometheus.MustNewConstMetric(replacedMetric, prometheus.CounterValue, float64(report.Replaced))
	out <- prometheus.MustNewConstMetric(failuresMetric, prometheus.GaugeValue, float64(report.Failures))
	if age := s.comparedAge(); age >= 0 {
		out <- prometheus.MustNewConstMetric(ageMetric, prometheus.GaugeValue, age.Seconds())
	}
	if r := report.Reconcile; r != nil {
		out <- prometheus.MustNewConstMetric(refusedMetric, prometheus.GaugeValue, float64(r.Refused))
		out <- prometheus.MustNewConstMetric(differedMetric, prometheus.GaugeValue, float64(r.Differed))
		out <- prometheus.MustNewConstMetric(missingMetric, prometheus.GaugeValue, float64(r.Missing))
	}
}
