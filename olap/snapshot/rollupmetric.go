package snapshot

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	rollupAge = prometheus.NewDesc("runlens_rollup_age_seconds", "Age of the watermark: the rollup has everything that"+
		" was stored before it. Before the first refresh, the time since this server started.", nil, nil)
	rollupDamages = prometheus.NewDesc("runlens_rollup_damages", "Organizations and sources whose rollup is damaged, or"+
		" to be built after a move, so that queries read base tables.", nil, nil)
)

// A rollupMetric is what the rollup log said last. It is read at every scrape, so that it is known on a server that
// does no maintenance: where none does any, it is the one thing that says so.
type rollupMetric struct {
	conn driver.Conn

	mu        sync.Mutex
	watermark time.Time // by the clock of this process
	damages   int
}

// RollupMetric says how old the rollup's watermark is, and how much of the rollup is damaged. While the store does not
// answer, both go on from what it said last.
func RollupMetric(conn driver.Conn) prometheus.Collector {
	return &rollupMetric{conn: conn, watermark: time.Now()}
}

// Describe sends what the metrics are.
func (m *rollupMetric) Describe(out chan<- *prometheus.Desc) {
	out <- rollupAge
	out <- rollupDamages
}

// Collect reads the log and sends both metrics.
func (m *rollupMetric) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	log, err := ReadLog(ctx, m.conn)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.damages = len(log.Damaged)
		if log.Committed > 0 {
			m.watermark = time.Now().Add(log.Until.Sub(log.Now))
		}
	}
	out <- prometheus.MustNewConstMetric(rollupAge, prometheus.GaugeValue, time.Since(m.watermark).Seconds())
	out <- prometheus.MustNewConstMetric(rollupDamages, prometheus.GaugeValue, float64(m.damages))
}
