package moment

import (
	"context"
	"maps"
	"reflect"
	"slices"
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
type Changes struct{ table *ext.Table }

// ReadChanges reads what changed in an organization of which a row was stored after an instant; nil if that is more than most rows.
func ReadChanges(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.SettledTable, since time.Time, most int) (*Changes, error) {
	settings := clickhouse.Settings{"enable_shared_storage_snapshot_in_query": 1}
	maps.Copy(settings, schema.FinalSettings)
	stored := ofOrganization + " AND " + table.StoredAt + " > fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
	rows, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(settings)),
		table.SignedChanges(ofOrganization, stored, len(table.Columns)+len(table.Texts))+"\nLIMIT {most:UInt64}",
		clickhouse.Named("organization", string(organization)), clickhouse.Named("since", since.UnixMilli()), clickhouse.Named("most", most+1))
	if err != nil {
		return nil, failure.Of("read what changed", err)
	}
	defer rows.Close()
	c, err := collect(rows)
	if err != nil {
		return nil, failure.Of("read what changed", err)
	}
	if c.table.Block().Rows() > most {
		return nil, nil
	}
	return c, nil
}

// collect keeps rows as ClickHouse takes them.
func collect(rows driver.Rows) (c *Changes, err error) {
	types := rows.ColumnTypes()
	var columns []func(*ext.Table) error
	for _, t := range types {
		columns = append(columns, ext.Column(t.Name(), column.Type(t.DatabaseTypeName())))
	}
	c = &Changes{}
	if c.table, err = ext.NewTable(schema.TableChanges, columns...); err != nil {
		return nil, err
	}
	targets, values := make([]any, len(types)), make([]any, len(types))
	for rows.Next() {
		for i, t := range types {
			targets[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		for i, target := range targets {
			values[i] = reflect.ValueOf(target).Elem().Interface()
		}
		if err := c.table.Append(values...); err != nil {
			return nil, err
		}
	}
	return c, rows.Err()
}

// None reports whether nothing changed.
func (c *Changes) None() bool { return c.table.Block().Rows() == 0 }

// Table is the external table schema.TableChanges with the event clock, the first n of the settled table's columns and texts, the time of the
// first storing and the sign.
func (c *Changes) Table(n int) (*ext.Table, error) {
	all := c.table.Block().Columns
	table, err := ext.NewTable(schema.TableChanges)
	if err == nil {
		table.Block().Columns = slices.Concat(all[:1+n], all[len(all)-2:])
	}
	return table, err
}
