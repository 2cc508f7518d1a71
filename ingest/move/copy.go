package move

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	// blockRows is how many rows are copied at once; with a few blocks they bound the mover's memory.
	blockRows = 20_000
	// chunk is how many organizations are named in one statement, half of what a parameter may have over HTTP.
	chunk = 500
)

// A table is one that is copied.
type table struct {
	name string
	// storedAt is the column of the stamp by which later rows are found; empty to copy all of them each time.
	storedAt string
	where    string // which rows; ofOrganizations by default
	whole    bool   // which rows has nothing to do with the organizations
	once     bool   // equal rows don't merge, so that those are left out that the new cell has
	compared bool   // both cells have to have the same rows in the end
}

const ofOrganizations = "organization_id IN {organizations:Array(String)}"

var ofKeys = "key_id IN" + sql.In(sql.Select{
	Columns: []string{"key_id"}, From: ofAll(schema.TableAPIKeys), Where: []string{ofOrganizations},
})

// records are copied in 2, and what is new of them in 4. Conflicts come first, since servers get to know them late.
var records = []table{
	{name: schema.TableConflicts, compared: true},
	{name: schema.TableAgents, compared: true},
	{name: schema.TableRuns, storedAt: "last_stored_at", compared: true},
	{name: schema.TableAttributions, storedAt: "first_stored_at", compared: true},
}

// lists are copied in 4. A revocation that was acknowledged before is in them, and none is acknowledged until 9. People
// who were purged are known by hashes alone, so that all of them are copied, with the keys of the hashes.
var lists = []table{
	{name: schema.TableAPIKeys, compared: true},
	{name: schema.TableAPIKeyUses, where: ofKeys},
	{name: schema.TableReplacements, once: true},
	{name: schema.TableSecrets, once: true, whole: true, where: "name = '" + schema.SecretPurgedPeople + "'"},
	{name: schema.TablePurgedPeople, whole: true, where: "1"},
}

// logs are copied in 10, when nobody waits for it: what was done to the organizations, and what servers still noted in
// the old cell of what they had answered from it.
var logs = []table{
	{name: schema.TableAPIKeyUses, where: ofKeys}, {name: schema.TableUsageLog, once: true},
	{name: schema.TableAuditLog, once: true},
}

// columns are the names of a table's columns that are stored as they are sent.
func (m *mover) columns(ctx context.Context, t table) (names []string, err error) {
	if names, known := m.known[t.name]; known {
		return names, nil
	}
	err = m.from.conn.QueryRow(ctx, "SELECT arrayMap(c -> c.2, arraySort(groupArray((position, name)))) FROM"+
		" system.columns WHERE database = currentDatabase() AND table = {table:String} AND default_kind IN ('', 'DEFAULT')",
		clickhouse.Named("table", t.name)).Scan(&names)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("cell %s: the table %s can't be read", m.from.name, t.name)
	}
	if err == nil {
		m.known[t.name] = names
	}
	return names, err
}

// copy stores the rows of tables in the new cell that were stored in the old one at an instant or later.
func (m *mover) copy(ctx context.Context, organizations []string, since time.Time, tables ...table) error {
	for _, t := range tables {
		columns, err := m.columns(ctx, t)
		if err != nil {
			return err
		}
		parts := slices.Collect(slices.Chunk(organizations, chunk))
		if t.whole {
			parts = [][]string{nil}
		}
		for _, some := range parts {
			if err := m.copyTable(ctx, t, columns, some, since); err != nil {
				return fmt.Errorf("copy %s: %w", t.name, err)
			}
		}
		if t.name == schema.TableConflicts {
			if err := m.noteConflicts(ctx, organizations); err != nil {
				return err
			}
		}
	}
	return m.to.check(ctx)
}

// rowsOf selects the rows of a table. It has the parameter organizations.
func (t table) rowsOf(columns ...string) sql.Select {
	where := t.where
	if where == "" {
		where = ofOrganizations
	}
	return sql.Select{Columns: columns, From: ofAll(t.name), Where: []string{where}}
}

// copyTable copies partition by partition, so that a block makes few parts.
func (m *mover) copyTable(ctx context.Context, t table, columns, organizations []string, since time.Time) error {
	named := clickhouse.Named("organizations", append([]string{}, organizations...))
	of := t.rowsOf("arraySort(groupUniqArray(_partition_id))")
	args := []any{named}
	if t.storedAt != "" && !since.IsZero() {
		of.Where = append(of.Where, t.storedAt+" >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')")
		args = append(args, clickhouse.Named("since", since.UnixMilli()))
	}
	// ClickHouse refuses a statement over virtual columns that it answers from a projection.
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"optimize_use_projections": 0}))
	var partitions []string
	if err := m.from.conn.QueryRow(ctx, of.String(), args...).Scan(&partitions); err != nil {
		return err
	}
	of.Columns, of.Where = columns, append(of.Where, "_partition_id = {partition:String}")
	for _, partition := range partitions {
		rows, err := m.from.conn.Query(ctx, of.String(), append(args, clickhouse.Named("partition", partition))...)
		if err != nil {
			return err
		}
		err = m.copyRows(ctx, t, columns, named, rows)
		if err = errors.Join(err, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copyRows copies rows block by block.
func (m *mover) copyRows(ctx context.Context, t table, columns []string, named any, rows driver.Rows) error {
	var made []func(*ext.Table) error
	row := make([]reflect.Value, len(columns))
	scanned, values := make([]any, len(columns)), make([]any, len(columns))
	for i, c := range rows.ColumnTypes() {
		made = append(made, ext.Column(columns[i], column.Type(c.DatabaseTypeName())))
		row[i] = reflect.New(c.ScanType())
		scanned[i] = row[i].Interface()
	}
	for more := true; more; {
		block, err := ext.NewTable("copied", made...)
		if err != nil {
			return err
		}
		n := 0
		for n < blockRows {
			if more = rows.Next(); !more {
				break
			}
			if err := rows.Scan(scanned...); err != nil {
				return err
			}
			for i := range row {
				values[i] = row[i].Elem().Interface()
				row[i].Elem().SetZero() // what it refers to belongs to the block now
			}
			if err := block.Append(values...); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			break
		}
		if err := m.store(ctx, t, columns, block, named); err != nil {
			return err
		}
		m.copied += uint64(n)
		m.o.Progress(m.copied)
	}
	return rows.Err()
}

// store stores a block in the new cell, unless another command has taken over.
func (m *mover) store(ctx context.Context, t table, columns []string, block *ext.Table, named any) error {
	list := strings.Join(columns, ", ")
	sent := sql.Select{Columns: columns, From: sql.Sent("copied"), Where: []string{m.to.fence()}}
	var args []any
	if t.once {
		hash := "cityHash64(tuple(" + list + "))"
		sent.Where = append(sent.Where, hash+" NOT IN"+sql.In(t.rowsOf(hash)))
		args = append(args, named)
	}
	return m.to.conn.Exec(changing(ctx, clickhouse.WithExternalTable(block)),
		"INSERT INTO "+t.name+" ("+list+")\n"+sent.String(), args...)
}
