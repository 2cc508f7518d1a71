package settle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
)

// A Difference is where a settled table is not what its source says.
type Difference struct {
	Table string `json:"table"`
	// Projection is the one that does not add up to its own table's rows; empty where the rows themselves differ.
	Projection   string `json:"projection,omitempty"`
	Organization string `json:"organization_id,omitempty"`
	Month        string `json:"month,omitempty"` // of the event clock in UTC, YYYYMM; empty for starters
	Records      int64  `json:"records"`         // by the source; of starters and shared keys those that are missing
	Settled      int64  `json:"settled"`
}

// Check compares every settled record with its source, all of its columns, and every projection with the
// rows it adds up. Meanwhile nobody settles and queries read the records themselves.
func Check(ctx context.Context, conn driver.Conn) (found []Difference, err error) {
	l, err := take(ctx, conn, 0)
	if err != nil {
		return nil, err
	}
	// A check that fails changed nothing, so that the tables may be used again.
	release := l.run(ctx, l.until, func(ctx context.Context, _ *Lease) error {
		found, err = l.compare(ctx)
		return nil
	})
	if err == nil {
		err = release
	}
	return found, err
}

func (l *Lease) compare(ctx context.Context) (found []Difference, err error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings))
	for _, t := range schema.Settled {
		differences, err := l.checkRecords(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("settle: check %s: %w", t.Table, err)
		}
		found = append(found, differences...)
		for _, r := range t.Rollups {
			same, err := l.checkRollup(ctx, t, r)
			if err != nil {
				return nil, fmt.Errorf("settle: check %s of %s: %w", r.Projection, t.Table, err)
			}
			if !same {
				found = append(found, Difference{Table: t.Table, Projection: r.Projection})
			}
		}
	}
	missing, err := l.checkStarters(ctx)
	if err != nil {
		return nil, fmt.Errorf("settle: check %s: %w", schema.TableStarters, err)
	}
	shared, err := l.checkSharedKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("settle: check %s: %w", schema.TableSharedKeys, err)
	}
	return slices.Concat(found, missing, shared), nil
}

// checkStarters looks for settled starters of which nobody knows what they stand for.
func (l *Lease) checkStarters(ctx context.Context) (found []Difference, err error) {
	rows, err := l.conn.Query(ctx, "SELECT toString(organization_id), toInt64(uniqExact(starter)) FROM "+schema.SettledOf(schema.TableRuns).Table+
		" WHERE starter != 0 AND (organization_id, starter) NOT IN (SELECT organization_id, starter FROM "+schema.TableStarters+") GROUP BY organization_id ORDER BY organization_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		d := Difference{Table: schema.TableStarters}
		if err := rows.Scan(&d.Organization, &d.Records); err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, rows.Err()
}

// checkRecords compares counts and sums of checksums by organization and month, over all records but those of
// which a row was stored behind the boundary.
func (l *Lease) checkRecords(ctx context.Context, t schema.SettledTable) (found []Difference, err error) {
	ofSource, ofSettled, _ := t.Lists(len(t.Columns))
	key := strings.Join(t.RecordKey(), ", ")
	settled := " WHERE (" + key + ") NOT IN (SELECT " + key + " FROM " + t.Source + " WHERE " + t.StoredAt + " > fromUnixTimestamp64Milli({until:Int64}, 'UTC'))"
	// The hash is of a tuple: of several values one of which is null it would be null.
	side := func(from, records, signs string, columns []string, sign string) string {
		return "SELECT organization_id, toString(toYYYYMM(" + t.Clock + ")) AS month, " + records + " AS in_source, " + signs + " AS settled, " +
			sign + " * reinterpretAsInt64(cityHash64(tuple(" + key + ", first_stored_at, " + strings.Join(columns, ", ") + "))) AS checksum FROM " + from + settled
	}
	rows, err := l.conn.Query(ctx, "SELECT toString(organization_id), month, sum(in_source) AS records, sum(settled) AS settled_records FROM ("+
		side("(SELECT * FROM "+t.Source+" FINAL WHERE "+t.Counts+")", "toInt64(1)", "toInt64(0)", ofSource, "1")+" UNION ALL "+side(t.Table, "toInt64(0)", "toInt64(sign)", ofSettled, "-sign")+
		") GROUP BY organization_id, month HAVING records != settled_records OR sum(checksum) != 0 ORDER BY organization_id, month",
		clickhouse.Named("until", l.until.UnixMilli()))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		d := Difference{Table: t.Table}
		if err := rows.Scan(&d.Organization, &d.Month, &d.Records, &d.Settled); err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, rows.Err()
}

// checkRollup compares what a projection has added up with the same sums over the rows.
func (l *Lease) checkRollup(ctx context.Context, t schema.SettledTable, r schema.Rollup) (bool, error) {
	keys := append([]string{"organization_id", r.Time}, r.Keys...)
	columns := append([]string(nil), keys...)
	for name := range t.Sums {
		columns = append(columns, "sum("+name+")")
	}
	sql := "SELECT groupBitXor(cityHash64(tuple(*))) FROM (SELECT " + strings.Join(columns, ", ") + " FROM " + t.Table + " GROUP BY " + strings.Join(keys, ", ") + ")"
	var sums [2]uint64
	for i, settings := range []string{" SETTINGS optimize_use_projections = 0", " SETTINGS force_optimize_projection_name = '" + r.Projection + "'"} {
		if err := l.conn.QueryRow(ctx, sql+settings).Scan(&sums[i]); err != nil {
			// An empty table has no part that could have the projection.
			if i == 1 && sums[0] == 0 {
				return true, nil
			}
			return false, err
		}
	}
	return sums[0] == sums[1], nil
}
