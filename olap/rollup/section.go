package rollup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A section is what is compared at once: the records of some organizations in one partition of a rollup table.
type section struct {
	table       *schema.RollupTable
	partition   int64  // the year times 10 and its quarter, of the event clock in UTC
	first, last string // organizations, inclusive
	records     uint64 // about how many it has; 0 where nobody has counted them
}

// sectionRows is about how many records a section has; more only where one organization has more in a partition.
const sectionRows = 500_000

// bounds are the instants between which the event clock of its records lies: start inclusive, end exclusive.
func (s section) bounds() (start, end time.Time) {
	start = time.Date(int(s.partition/10), time.Month(s.partition%10*3-2), 1, 0, 0, 0, 0, time.UTC)
	return start, start.AddDate(0, 3, 0)
}

// span is its partition for people.
func (s section) span() string { return fmt.Sprintf("%d-Q%d", s.partition/10, s.partition%10) }

// of is the same of one organization.
func (s section) of(organization string) section {
	s.first, s.last = organization, organization
	return s
}

// id is the partition's name in ClickHouse.
func (s section) id() string { return strconv.FormatInt(s.partition, 10) }

// months are the names of the partitions of the source.
func (s section) months() (ids []string) {
	start, _ := s.bounds()
	for month := range 3 {
		ids = append(ids, start.AddDate(0, month, 0).Format("200601"))
	}
	return ids
}

// Refreshers, and the comparison of the rollup with its sources, read the rows of all organizations.
var (
	refreshed = sql.AllOrganizations("a refresh writes the rollup of all of them")
	compared  = sql.AllOrganizations("the rollup of all of them is compared")
)

const ofOrganizations = "organization_id >= {first:String} AND organization_id <= {last:String}"

// where is the condition that a row of the source or of the rollup is the section's.
func (s section) where() string {
	return ofOrganizations + " AND " + s.table.Clock + " >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')" +
		" AND " + s.table.Clock + " < fromUnixTimestamp64Milli({end:Int64}, 'UTC')"
}

// args are the parameters of its conditions.
func (s section) args() []any {
	start, end := s.bounds()
	return []any{
		clickhouse.Named("first", s.first), clickhouse.Named("last", s.last),
		clickhouse.Named("start", start.UnixMilli()), clickhouse.Named("end", end.UnixMilli()),
	}
}

// A walk goes through all sections of the rollup once.
type walk struct {
	conn     driver.Conn
	pending  []section // partitions, of which the organizations are not known yet
	sections []section
}

// newWalk begins a walk.
func newWalk(ctx context.Context, conn driver.Conn) (*walk, error) {
	pending, err := partitions(ctx, conn, schema.RollupTables...)
	if err != nil {
		return nil, err
	}
	return &walk{conn: conn, pending: pending}, nil
}

// partitions are those of some rollup tables and their sources, of which the organizations are not known yet.
func partitions(ctx context.Context, conn driver.Conn, tables ...*schema.RollupTable) (all []section, err error) {
	for _, t := range tables {
		// The source is partitioned by month, the rollup by quarter.
		var found []int64
		err := conn.QueryRow(ctx, "SELECT arraySort(groupUniqArray(if(table = {source:String},"+
			" intDiv(toInt64(partition), 100) * 10 + intDiv(toInt64(partition) % 100 + 2, 3), toInt64(partition))))"+
			" FROM system.parts WHERE active AND database = currentDatabase() AND table IN ({source:String}, {rollup:String})",
			clickhouse.Named("source", t.Source), clickhouse.Named("rollup", t.Table)).Scan(&found)
		if err != nil {
			return nil, fmt.Errorf("rollup: list partitions: %w", err)
		}
		for _, partition := range found {
			all = append(all, section{table: t, partition: partition})
		}
	}
	return all, nil
}

// next returns the next section, or nil after the last one.
func (w *walk) next(ctx context.Context) (*section, error) {
	for len(w.sections) == 0 {
		if len(w.pending) == 0 {
			return nil, nil
		}
		var err error
		if w.sections, err = w.divide(ctx, w.pending[0]); err != nil {
			return nil, fmt.Errorf("rollup: list organizations: %w", err)
		}
		w.pending = w.pending[1:]
	}
	next := w.sections[0]
	w.sections = w.sections[1:]
	return &next, nil
}

// divide divides a partition by organizations.
func (w *walk) divide(ctx context.Context, partition section) (sections []section, err error) {
	count := func(table, ids string) sql.Select {
		return sql.Select{
			Columns: []string{"toString(organization_id) AS organization", "count() AS records"}, From: compared(table),
			Where: []string{"_partition_id IN " + ids}, Group: []string{"organization"},
		}
	}
	counted := sql.Select{
		Columns: []string{"organization", "sum(records)"},
		From: sql.Query(sql.Union{count(partition.table.Source, "{months:Array(String)}"),
			count(partition.table.Table, "{partitions:Array(String)}")}),
		Group: []string{"organization"}, Order: []string{"organization"},
	}
	rows, err := w.conn.Query(background(ctx, ""), counted.String(), clickhouse.Named("months", partition.months()),
		clickhouse.Named("partitions", []string{partition.id()}))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var organization string
		var records uint64
		if err := rows.Scan(&organization, &records); err != nil {
			return nil, err
		}
		records /= 2 // both tables have them
		if n := len(sections); n == 0 || sections[n-1].records+records > sectionRows {
			sections = append(sections, partition.of(organization))
		}
		last := &sections[len(sections)-1]
		last.last = organization
		last.records += records
	}
	return sections, rows.Err()
}
