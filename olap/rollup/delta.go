package rollup

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Delta is what the rollup lacks of an organization's records: signed rows (schema.RollupTable.DeltaRows). It is safe
// for concurrent use.
type Delta struct {
	table *ext.Table
	rows  []DeltaRow
	size  int // about what they take in memory
}

// A DeltaRow says of one row what decides whether a query needs it. Times are in Unix milliseconds.
type DeltaRow struct {
	Clock         int64 // the record's event clock
	FirstStoredAt int64 // of the record
	Sign          int8  // -1 takes away what the rollup has
}

// ReadDelta reads the delta of records of which a row was stored after an instant, together with a delta that was read
// before, nil for none, while the rollup was the same. It returns nil if those are more than most rows.
func ReadDelta(
	ctx context.Context, conn driver.Conn, of snapshot.Records, since time.Time, before *Delta, most int,
) (*Delta, error) {
	table := schema.RollupOf(of.Source)
	settings := clickhouse.Settings{"enable_shared_storage_snapshot_in_query": 1}
	maps.Copy(settings, schema.ReadSettings)
	options := []clickhouse.QueryOption{clickhouse.WithSettings(settings)}
	known := ""
	if before != nil && before.Len() > 0 {
		sent, err := before.Table(table.ColumnsBefore(), func(DeltaRow) bool { return true })
		if err != nil {
			return nil, err
		}
		known, options = schema.TableDelta, append(options, clickhouse.WithExternalTable(sent))
	}
	reading := schema.Reading{Read: sql.Table, Before: known, Stored: []string{
		table.StoredAt + " > fromUnixTimestamp64Milli({since:Int64}, 'UTC')", table.CountsOfOrganization(),
	}}
	statement := table.DeltaRows(reading)
	statement.Limit = "{most:UInt64}"
	rows, err := conn.Query(clickhouse.Context(ctx, options...), statement.String(),
		clickhouse.Named("organization", string(of.Organization)),
		clickhouse.Named("since", since.UnixMilli()), clickhouse.Named("most", most+1))
	if err != nil {
		return nil, failure.Of("read the delta", err)
	}
	defer rows.Close()
	d, err := collect(rows, table.Clock)
	if err != nil {
		return nil, failure.Of("read the delta", err)
	}
	if len(d.rows) > most {
		return nil, nil
	}
	return d, nil
}

// collect keeps rows as ClickHouse takes them.
func collect(rows driver.Rows, clock string) (d *Delta, err error) {
	types := rows.ColumnTypes()
	var columns []func(*ext.Table) error
	for _, t := range types {
		columns = append(columns, ext.Column(t.Name(), column.Type(t.DatabaseTypeName())))
	}
	d = &Delta{}
	if d.table, err = ext.NewTable(schema.TableDelta, columns...); err != nil {
		return nil, err
	}
	targets, values := make([]any, len(types)), make([]any, len(types))
	ofRow := int(unsafe.Sizeof(DeltaRow{}))
	for _, t := range types {
		ofRow += int(t.ScanType().Size())
	}
	at := slices.IndexFunc(types, func(t driver.ColumnType) bool { return t.Name() == clock })
	for rows.Next() {
		for i, t := range types {
			targets[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		for i, target := range targets {
			values[i] = reflect.ValueOf(target).Elem().Interface()
			if text, ok := values[i].(string); ok {
				d.size += len(text)
			}
		}
		if err := d.table.Append(values...); err != nil {
			return nil, err
		}
		d.size += ofRow
		last := len(values) - 1
		d.rows = append(d.rows, DeltaRow{
			Clock: values[at].(time.Time).UnixMilli(), FirstStoredAt: values[last-1].(time.Time).UnixMilli(),
			Sign: values[last].(int8),
		})
	}
	return d, rows.Err()
}

// Len is the number of rows.
func (d *Delta) Len() int { return len(d.rows) }

// bytes is about what the delta takes in memory, nil too: slices that grow have a quarter to spare.
func (d *Delta) bytes() int {
	if d == nil {
		return 0
	}
	return d.size * 5 / 4
}

// Table is the external table schema.TableDelta with some of the columns, and with schema.ColumnAsked: 1 for the rows
// that the query needs.
func (d *Delta) Table(columns []string, needed func(DeltaRow) bool) (*ext.Table, error) {
	table, err := ext.NewTable(schema.TableDelta, ext.Column(schema.ColumnAsked, "UInt8"))
	if err != nil {
		return nil, err
	}
	flags := make([]uint8, len(d.rows))
	for i, row := range d.rows {
		if needed(row) {
			flags[i] = 1
		}
	}
	if _, err := table.Block().Columns[0].Append(flags); err != nil {
		return nil, err
	}
	for _, column := range d.table.Block().Columns {
		if slices.Contains(columns, column.Name()) {
			table.Block().Columns = append(table.Block().Columns, column)
		}
	}
	return table, nil
}
