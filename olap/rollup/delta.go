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

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

const (
	// maxDelta is the most rows of a delta that is cached: to send more would cost as much as to compute them inline.
	maxDelta = 20_000
	// maxDeltas bounds the deltas that are cached, in bytes: those of some 20 organizations with the most rows.
	maxDeltas = 64 << 20
	deltaAge  = time.Minute
	// backOff is how long a delta is not read again after it had too many rows.
	backOff = 2 * time.Second
)

// A Cached is a delta with the snapshot that it completes: it is right as long as a later one is the same, with the
// same rollup (snapshot.Snapshot.SameRollup). What is written to the log from then on, before a statement has its own
// snapshots, makes the statement fail (schema.RollupUnchanged).
type Cached struct {
	Snapshot snapshot.Snapshot // of before the delta was read, with the rollup log
	Delta    *Delta            // nil where it could not be read apart from a statement
	readAt   time.Time
}

// Deltas caches deltas by organization and source, and reads what was stored since.
type Deltas struct {
	conn    driver.Conn
	view    *snapshot.View
	cached  *cache.Cache[Cached]
	reading cache.Group[Cached]
}

// NewDeltas returns Deltas that have cached nothing, of the store of a view.
func NewDeltas(conn driver.Conn, view *snapshot.View) *Deltas {
	return &Deltas{conn: conn, view: view, cached: cache.New[Cached](maxDeltas, deltaAge)}
}

// Get returns the delta of an organization's records, with everything that was acknowledged before the call, and a
// snapshot that was taken since. The delta is nil where a statement has to compute it inline. onlyEmpty says that the
// query cannot use the rows of a delta, only that it has none.
//
//  1. Take a snapshot. Where it is the one of the cached delta, that is the answer.
//  2. Read the delta again, once for all queries that need it meanwhile, unless only an empty one is of use and rows
//     are arriving. If the rollup is the one that the cached rows complete, they stay valid, and only what was stored
//     since is read. Both logs say so, each of them read by one statement. While a refresh batch is in progress there
//     is no delta: what the batch writes would count twice.
//
// Where the store's clock was set back, rows that are stored from then on seem older than those before. What is cached
// is not used any more, nor is the rollup, until a refresher has moved the watermark back.
func (d *Deltas) Get(ctx context.Context, of snapshot.Records, onlyEmpty bool) (Cached, error) {
	last, known := d.cached.Get(of.Place())
	if known {
		now, err := d.view.Take(ctx, 0, of.Organization)
		if err != nil {
			return Cached{}, err
		}
		if last.Snapshot.SameRollup(now, of) {
			now.Log = last.Snapshot.Log
			last.Snapshot = now
			return last, nil
		}
		if last.Delta == nil && time.Since(last.readAt) < backOff || onlyEmpty && now.Arriving(of.Organization) {
			return d.None(ctx, of)
		}
	}
	_, key := of.Place()
	return d.reading.Do(ctx, key, func(ctx context.Context) (Cached, error) { return d.read(ctx, of, onlyEmpty) })
}

// None is a snapshot without a delta.
func (d *Deltas) None(ctx context.Context, of snapshot.Records) (c Cached, err error) {
	c.Snapshot, err = d.view.Take(ctx, snapshot.RollupLog, of.Organization)
	return c, err
}

// Forget makes the next query read the delta of some records again.
func (d *Deltas) Forget(of snapshot.Records) {
	owner, key := of.Place()
	d.cached.Put(owner, key, Cached{}, 0)
}

// Len is the number of rows of the cached delta; -1 where there is none.
func (d *Deltas) Len(of snapshot.Records) int {
	if last, known := d.cached.Get(of.Place()); known && last.Delta != nil {
		return last.Delta.Len()
	}
	return -1
}

// read reads a delta and caches it, also one that has too many rows.
func (d *Deltas) read(ctx context.Context, of snapshot.Records, onlyEmpty bool) (c Cached, err error) {
	c.Snapshot, err = d.view.Take(ctx, snapshot.InFlight|snapshot.RollupLog, of.Organization)
	if err != nil {
		return c, err
	}
	now := c.Snapshot.For(of.Organization) // which may be kept
	c.Snapshot = now
	since := now.Log.Watermark(of)
	if since.IsZero() || now.Log.Refreshing || onlyEmpty && now.Arriving(of.Organization) {
		return c, nil
	}
	var before *Delta
	if last, _ := d.cached.Get(of.Place()); last.Delta != nil && now.Log.SameRollup(last.Snapshot.Log) {
		if seen := last.Snapshot.SeenUntil(); seen.After(since) { // what its rows lack was stored after it
			since, before = seen, last.Delta
		}
	}
	c.Delta, err = ReadDelta(ctx, d.conn, of, since, before, maxDelta)
	if err == nil {
		c.readAt = time.Now()
		owner, key := of.Place()
		d.cached.Put(owner, key, c, c.Delta.bytes())
	}
	return c, err
}

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
) (d *Delta, err error) {
	table := schema.RollupOf(of.Source)
	options := []clickhouse.QueryOption{clickhouse.WithSettings(maps.Clone(schema.ReadSettings))}
	known := ""
	if before != nil && before.Len() > 0 {
		sent, err := before.Table(table.ColumnsBefore(), func(DeltaRow) bool { return true })
		if err != nil {
			return nil, err
		}
		known, options = schema.TableDelta, append(options, clickhouse.WithExternalTable(sent))
	}
	reading := schema.Reading{Read: sql.Table, Before: known, Stored: []string{
		table.StoredAfter("fromUnixTimestamp64Milli({since:Int64}, 'UTC')"), table.CountsOfOrganization(),
	}}
	statement := table.DeltaRows(reading)
	statement.Limit = "{most:UInt64}"
	ctx, end := trace.Statement(ctx, "delta")
	defer func() { end(err) }()
	rows, err := conn.Query(clickhouse.Context(ctx, options...), statement.String(),
		clickhouse.Named("organization", string(of.Organization)),
		clickhouse.Named("since", since.UnixMilli()), clickhouse.Named("most", most+1))
	if err != nil {
		return nil, failure.Of("read the delta", err)
	}
	defer rows.Close()
	if d, err = collect(rows, table.Clock); err != nil {
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
