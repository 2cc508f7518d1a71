// Package exec runs compiled statements through clickhouse-go and is the only reader of their rows.
package exec

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
)

// settings apply to every statement, in addition to schema.ReadSettings.
var settings = clickhouse.Settings{
	// The smaller side of a join is on the right already. With the sides swapped, ClickHouse also tests every
	// row by a filter made of the other side's keys, which took half as long again where nearly all match.
	"query_plan_join_swap_table": "false",
	// Rows of an organization live on one shard, so that joins and subqueries are local ones.
	"distributed_product_mode":    "local",
	"optimize_skip_unused_shards": 1,
	// A query only reads; 2 still lets the driver set the time limit. Over HTTP, ClickHouse notices
	// that a client has gone only for such queries, and only with the second setting.
	"readonly": 2,
	"cancel_http_readonly_queries_on_client_close": 1,
	// One query must not take the memory of all others; big groupings go to disk before that.
	"max_memory_usage":                   maxMemoryBytes,
	"max_bytes_before_external_group_by": maxMemoryBytes / 2,
}

// maxMemoryBytes is the most memory one statement may use in ClickHouse, inclusive.
const maxMemoryBytes = 4 << 30

// ErrSharedKeys is the error of a statement that fails with compile.SharedKeysMessage: the rollup cannot distinguish
// the texts of the answer, the base tables can.
var ErrSharedKeys = errors.New("exec: initiator keys are shared")

// ErrLogChanged is the error of a statement that fails with schema.LogChangedMessage: the rollup was altered since its
// plan was made.
var ErrLogChanged = errors.New("exec: the rollup log changed")

// codeThrowIf is ClickHouse's FUNCTION_THROW_IF_VALUE_IS_NON_ZERO.
const codeThrowIf = 395

// A Table is the answer to a statement: rows of values in the order of its columns.
type Table struct {
	Columns []compile.Column
	Rows    [][]value.Value
	// AsOf is the boundary of a statement with its own clock; zero without rows that report it.
	AsOf time.Time

	Took time.Duration // from sending the statement to its last row
	Cost cost.Cost     // of the statement
}

// settingsOf are those of a statement.
func settingsOf(statement compile.Statement) clickhouse.Settings {
	options := maps.Clone(settings)
	maps.Copy(options, schema.ReadSettings)
	if statement.Projection != "" {
		options["preferred_optimize_projection_name"] = statement.Projection
	}
	if statement.OneThread {
		options["max_threads"] = 1
	}
	return options
}

// Run executes a statement. queryID becomes ClickHouse's query_id, by which its log and its list
// of processes name the execution; comment its log_comment; external are the tables that come with the statement.
// The context's end stops the query.
func Run(ctx context.Context, conn driver.Conn, statement compile.Statement, queryID uuid.UUID, comment string,
	external ...*ext.Table) (*Table, error) {
	options := settingsOf(statement)
	options["log_comment"] = comment
	began := time.Now()
	ctx, meter := cost.Measure(ctx)
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(queryID.String()), clickhouse.WithSettings(options),
		clickhouse.WithExternalTable(external...))
	rows, err := conn.Query(ctx, statement.SQL, arguments(statement)...)
	if err != nil {
		return nil, fault(ctx, began, "exec: query", err)
	}
	defer rows.Close()
	table := &Table{Columns: statement.Columns}
	columns := targetsOf(statement.Columns)
	targets := columns
	var asOf, ofRow int64
	if statement.OwnClock {
		targets = append(targets, &ofRow)
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, failure.Of("exec: scan", err)
		}
		table.Rows = append(table.Rows, valuesOf(columns))
		asOf = max(asOf, ofRow)
	}
	if err := rows.Err(); err != nil {
		return nil, fault(ctx, began, "exec: read rows", err)
	}
	if asOf != 0 {
		table.AsOf = time.UnixMilli(asOf).UTC()
	}
	table.Took, table.Cost = time.Since(began), meter.Cost()
	return table, nil
}

// arguments are the parameters of a statement as the driver takes them.
func arguments(statement compile.Statement) []any {
	args := make([]any, len(statement.Params))
	for i, p := range statement.Params {
		args[i] = clickhouse.Named(p.Name, p.Value)
	}
	return args
}

// fault is the error of a statement that began at an instant and failed.
func fault(ctx context.Context, began time.Time, doing string, err error) error {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) && exception.Code == codeThrowIf {
		switch {
		case strings.Contains(exception.Message, compile.SharedKeysMessage):
			return ErrSharedKeys
		case strings.Contains(exception.Message, schema.LogChangedMessage):
			return ErrLogChanged
		}
	}
	return failure.OfStatement(ctx, began, doing, err)
}

// targetsOf has one typed target per column, reused from row to row.
func targetsOf(columns []compile.Column) (targets []any) {
	for _, c := range columns {
		switch c.Kind {
		case value.Text:
			targets = append(targets, new(*string))
		case value.Day:
			targets = append(targets, new(int64))
		case value.Count:
			targets = append(targets, new(uint64))
		case value.Ratio:
			targets = append(targets, new(*float64))
		}
	}
	return targets
}

// valuesOf are the values of the row that was scanned last.
func valuesOf(targets []any) []value.Value {
	values := make([]value.Value, len(targets))
	for i, target := range targets {
		switch target := target.(type) {
		case **string:
			if *target != nil {
				values[i] = value.Value{Kind: value.Text, Text: **target}
			}
		case *int64:
			values[i] = value.Value{Kind: value.Day, Number: *target + compile.FirstDay}
		case *uint64:
			values[i] = value.Value{Kind: value.Count, Number: int64(*target)}
		case **float64:
			if *target != nil {
				values[i] = value.Value{Kind: value.Ratio, Number: int64(math.Float64bits(**target))}
			}
		}
	}
	return values
}
