package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// scrapePatience bounds what one scrape of the metrics may wait for the store.
const scrapePatience = 2 * time.Second

// A storeMetric is a gauge by table or kind of records. It is read from the store at every scrape, so that it has what
// other processes did.
type storeMetric struct {
	conn        driver.Conn
	description *prometheus.Desc
	read        func(context.Context, driver.Conn) (map[string]float64, error)
}

// Describe sends what the metric is.
func (m storeMetric) Describe(out chan<- *prometheus.Desc) { out <- m.description }

// Collect sends the metric by each label that has one; none where the store does not answer, as the readiness says.
func (m storeMetric) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	values, err := m.read(ctx, m.conn)
	if err != nil {
		return
	}
	for label, value := range values {
		out <- prometheus.MustNewConstMetric(m.description, prometheus.GaugeValue, value, label)
	}
}

// LagMetric says how old the newest rows are at every scrape: it grows while nothing is copied, and is below zero while
// a row is dated in the future.
func LagMetric(conn driver.Conn) prometheus.Collector {
	return storeMetric{conn, prometheus.NewDesc("runlens_ingest_lag_seconds",
		"Time since the event clock of the newest stored row, by table; below zero where that is in the future.",
		[]string{"table"}, nil), lag}
}

// DamageMetric says which tables have lost parts. ClickHouse itself goes on without them.
func DamageMetric(conn driver.Conn) prometheus.Collector {
	return storeMetric{conn, prometheus.NewDesc("runlens_damaged_parts",
		"Parts that ClickHouse found damaged when it started and put aside, by table: their rows are missing.",
		[]string{"table"}, nil), DamagedParts}
}

// ConflictMetric counts the records whose sources broke what contract 3 calls immutable, whichever process found them.
func ConflictMetric(conn driver.Conn) prometheus.Collector {
	return storeMetric{conn, prometheus.NewDesc("runlens_conflicting_records",
		"Runs that were stored under several created_at, "+
			"and attribution records that were stored with several contents or occurred_at.",
		[]string{"record"}, nil), conflictingRecords}
}

func conflictingRecords(ctx context.Context, conn driver.Conn) (map[string]float64, error) {
	var columns []string
	kinds := []string{schema.ConflictRun, schema.ConflictAttribution}
	for _, kind := range kinds {
		// Every scrape counts them: hashes take less time and memory than ids.
		columns = append(columns, "toFloat64(uniqExactIf(sipHash64(organization_id, id), kind = '"+kind+"'))")
	}
	counted := sql.Select{Columns: columns, From: ofStore(schema.TableConflicts)}
	counts := make([]float64, len(kinds))
	if err := conn.QueryRow(oneThread(ctx), counted.String()).Scan(&counts[0], &counts[1]); err != nil {
		return nil, failure.Of("count conflicts", err)
	}
	return map[string]float64{kinds[0]: counts[0], kinds[1]: counts[1]}, nil
}

func lag(ctx context.Context, conn driver.Conn) (map[string]float64, error) {
	run, attribution, err := Newest(ctx, conn)
	seconds := map[string]float64{}
	for table, newest := range map[string]time.Time{schema.TableRuns: run, schema.TableAttributions: attribution} {
		if !newest.IsZero() {
			seconds[table] = time.Since(newest).Seconds()
		}
	}
	return seconds, err
}

// Newest returns the event clocks of the newest run and the newest attribution record of all organizations, zero where
// there is none. ClickHouse has them without reading rows.
func Newest(ctx context.Context, conn driver.Conn) (run, attribution time.Time, err error) {
	if run, err = newest(ctx, conn, schema.TableRuns, "created_at"); err == nil {
		attribution, err = newest(ctx, conn, schema.TableAttributions, "occurred_at")
	}
	return run, attribution, err
}

func newest(ctx context.Context, conn driver.Conn, table, clock string) (time.Time, error) {
	var rows uint64
	var at time.Time
	newest := sql.Select{Columns: []string{"count()", "max(" + clock + ")"}, From: ofStore(table)}
	if err := conn.QueryRow(ctx, newest.String()).Scan(&rows, &at); err != nil {
		return time.Time{}, failure.Of("read the newest row", err)
	}
	if rows == 0 {
		return time.Time{}, nil
	}
	return at.UTC(), nil
}

// damagedParts counts the parts that a start of ClickHouse put aside because they were damaged. Tables that need not
// survive a loss of power may have such parts after one.
const damagedParts = "SELECT table, toFloat64(count()) AS parts FROM system.detached_parts" +
	" WHERE database = currentDatabase() AND reason IN ('broken', 'broken-on-start', 'covered-by-broken')" +
	" AND table NOT IN ('" + schema.TableInsertCounters + "', '" + schema.TableAPIKeyUses + "', '" +
	schema.TableUsageLog + "') GROUP BY table"

// DamagedParts returns how many parts of which tables ClickHouse found damaged and put aside, and did not get back.
func DamagedParts(ctx context.Context, conn driver.Conn) (map[string]float64, error) {
	var found []struct {
		Table string  `ch:"table"`
		Parts float64 `ch:"parts"`
	}
	if err := conn.Select(oneThread(ctx), &found, damagedParts); err != nil {
		return nil, failure.Of("read damaged parts", err)
	}
	parts := map[string]float64{}
	for _, f := range found {
		parts[f.Table] = f.Parts
	}
	return parts, nil
}
