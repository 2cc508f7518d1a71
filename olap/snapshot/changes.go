package snapshot

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

// Changes are the rows of what changed in an organization since records were refreshed
// (schema.RollupTable.RollupDelta). They are safe for concurrent use.
type Changes struct {
	table *ext.Table
	rows  []Change
}

// A Change tells of one row what decides whether a question asks for it.
type Change struct {
	Clock       int64 // the record's event clock, in Unix milliseconds
	StoredFirst int64 // when the record was first stored, likewise
	Sign        int8  // -1 takes away what is refreshed
}

// ReadChanges reads what changed in an organization of which a row was stored after an instant, together with the changes before, nil for none, which
// were read when the same was refreshed. It returns nil if those are more than most rows.
func ReadChanges(ctx context.Context, conn driver.Conn, organization schema.OrganizationID, table *schema.RollupTable, since time.Time, before *Changes, most int) (*Changes, error) {
	settings := clickhouse.Settings{"enable_shared_storage_snapshot_in_query": 1}
	maps.Copy(settings, schema.ReadSettings)
	options := []clickhouse.QueryOption{clickhouse.WithSettings(settings)}
	known := ""
	if before != nil && before.Len() > 0 {
		given, err := before.Table(table.Remembered(), func(Change) bool { return true })
		if err != nil {
			return nil, err
		}
		known, options = schema.TableDelta, append(options, clickhouse.WithExternalTable(given))
	}
	stored := ofOrganization + " AND " + table.StoredAt + " > fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
	rows, err := conn.Query(clickhouse.Context(ctx, options...),
		table.RollupDelta(ofOrganization, stored, known)+"\nLIMIT {most:UInt64}",
		clickhouse.Named("organization", string(organization)), clickhouse.Named("since", since.UnixMilli()), clickhouse.Named("most", most+1))
	if err != nil {
		return nil, failure.Of("read what changed", err)
	}
	defer rows.Close()
	c, err := collect(rows, table.Clock)
	if err != nil {
		return nil, failure.Of("read what changed", err)
	}
	if len(c.rows) > most {
		return nil, nil
	}
	return c, nil
}

// ReadShared reports whether an initiator key of the organization stands for two texts, those of the changes among
// them. It holds while the counts of marks do with which the changes were read.
func (c *Changes) ReadShared(ctx context.Context, conn driver.Conn, organization schema.OrganizationID) (shared bool, err error) {
	texts := ""
	options := []clickhouse.QueryOption{clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1})}
	if c.Len() > 0 {
		columns := []string{"organization_id", "initiator_key", "initiator_identifier", "initiator_name"}
		given, err := c.Table(columns, func(Change) bool { return true })
		if err != nil {
			return false, err
		}
		options = append(options, clickhouse.WithExternalTable(given))
		texts = "SELECT DISTINCT organization_id, initiator_key, assumeNotNull(initiator_identifier) AS initiator_identifier, initiator_name" +
			" FROM " + schema.TableDelta + " WHERE isNotNull(initiator_identifier)"
	}
	err = conn.QueryRow(clickhouse.Context(ctx, options...),
		"SELECT count() > 0 FROM (\n"+schema.AnySharedKey(ofOrganization, texts)+"\n)",
		clickhouse.Named("organization", string(organization))).Scan(&shared)
	if err != nil {
		return false, failure.Of("look for shared initiator keys", err)
	}
	return shared, nil
}

// collect keeps rows as ClickHouse takes them.
func collect(rows driver.Rows, clock string) (c *Changes, err error) {
	types := rows.ColumnTypes()
	var columns []func(*ext.Table) error
	for _, t := range types {
		columns = append(columns, ext.Column(t.Name(), column.Type(t.DatabaseTypeName())))
	}
	c = &Changes{}
	if c.table, err = ext.NewTable(schema.TableDelta, columns...); err != nil {
		return nil, err
	}
	targets, values := make([]any, len(types)), make([]any, len(types))
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
		}
		if err := c.table.Append(values...); err != nil {
			return nil, err
		}
		last := len(values) - 1
		c.rows = append(c.rows, Change{values[at].(time.Time).UnixMilli(), values[last-1].(time.Time).UnixMilli(), values[last].(int8)})
	}
	return c, rows.Err()
}

// Len is how many rows they are.
func (c *Changes) Len() int { return len(c.rows) }

// Table is the external table schema.TableDelta with some of the columns, and with schema.ColumnAsked: 1 for the rows that are asked for.
func (c *Changes) Table(columns []string, asked func(Change) bool) (*ext.Table, error) {
	table, err := ext.NewTable(schema.TableDelta, ext.Column(schema.ColumnAsked, "UInt8"))
	if err != nil {
		return nil, err
	}
	flags := make([]uint8, len(c.rows))
	for i, row := range c.rows {
		if asked(row) {
			flags[i] = 1
		}
	}
	if _, err := table.Block().Columns[0].Append(flags); err != nil {
		return nil, err
	}
	for _, column := range c.table.Block().Columns {
		if slices.Contains(columns, column.Name()) {
			table.Block().Columns = append(table.Block().Columns, column)
		}
	}
	return table, nil
}
