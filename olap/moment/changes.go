package moment

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// Changes are the signed rows of what changed in an organization since records were settled
// (schema.SettledTable.SignedChanges). They are safe for concurrent use.
type Changes struct {
	names []string
	types []string
	rows  [][]any

	mu     sync.Mutex
	tables map[int]*ext.Table
}

// None reports whether nothing changed.
func (c *Changes) None() bool { return len(c.rows) == 0 }

// ReadChanges reads what changed in an organization of which a row was stored after an instant; nil if that is more than most rows.
func ReadChanges(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.SettledTable, since time.Time, most int) (*Changes, error) {
	settings := clickhouse.Settings{"enable_shared_storage_snapshot_in_query": 1}
	for name, value := range schema.FinalSettings {
		settings[name] = value
	}
	known := "organization_id = {organization:String}"
	stored := known + " AND " + table.StoredAt + " > fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
	rows, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(settings)),
		table.SignedChanges(known, stored, len(table.Columns)+len(table.Texts), "true")+"\nLIMIT {most:UInt64}",
		clickhouse.Named("organization", string(organization)), clickhouse.Named("since", since.UnixMilli()), clickhouse.Named("most", most+1))
	if err != nil {
		return nil, failure.Of("read what changed", err)
	}
	defer rows.Close()
	c := &Changes{names: rows.Columns(), tables: map[int]*ext.Table{}}
	types := rows.ColumnTypes()
	for _, t := range types {
		c.types = append(c.types, t.DatabaseTypeName())
	}
	for rows.Next() {
		targets := make([]any, len(types))
		for i, t := range types {
			targets[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, failure.Of("read what changed", err)
		}
		for i, target := range targets {
			targets[i] = reflect.ValueOf(target).Elem().Interface()
		}
		c.rows = append(c.rows, targets)
	}
	if err := rows.Err(); err != nil {
		return nil, failure.Of("read what changed", err)
	}
	if len(c.rows) > most {
		return nil, nil
	}
	return c, nil
}

// Table is the external table schema.TableChanges with the event clock, the first n of the settled table's columns and texts, the time of the
// first storing and the sign.
func (c *Changes) Table(n int) (*ext.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if table, built := c.tables[n]; built {
		return table, nil
	}
	// The clock in front, and the two others at the end.
	chosen := func(i int) bool { return i <= n || i >= len(c.names)-2 }
	var columns []func(*ext.Table) error
	for i, name := range c.names {
		if chosen(i) {
			columns = append(columns, ext.Column(name, column.Type(c.types[i])))
		}
	}
	table, err := ext.NewTable(schema.TableChanges, columns...)
	if err != nil {
		return nil, fmt.Errorf("moment: a table of what changed: %w", err)
	}
	for _, row := range c.rows {
		values := slices.Clone(row)
		kept := values[:0]
		for i, value := range values {
			if chosen(i) {
				kept = append(kept, value)
			}
		}
		if err := table.Append(kept...); err != nil {
			return nil, fmt.Errorf("moment: a table of what changed: %w", err)
		}
	}
	c.tables[n] = table
	return table, nil
}
