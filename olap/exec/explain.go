package exec

import (
	"context"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/failure"
)

// An Estimate is what ClickHouse's indexes leave of a table, or of one of its projections, for a statement to read.
type Estimate struct {
	Table              string
	Parts, Marks, Rows uint64
}

// Explain returns ClickHouse's plan of a statement, a line each, with what its indexes leave. Where ClickHouse knows
// EXPLAIN ANALYZE (26.7 does, 26.1 does not), the statement runs once more, and the plan says what each step took.
func Explain(
	ctx context.Context, conn driver.Conn, statement compile.Statement, external ...*ext.Table,
) (lines []string, estimates []Estimate, err error) {
	scan := func(rows driver.Rows) error {
		var line string
		err := rows.Scan(&line)
		lines = append(lines, strings.TrimRight(line, " "))
		return err
	}
	if err = explain(ctx, conn, "EXPLAIN ANALYZE ", statement, external, scan); err != nil {
		lines = nil
		err = explain(ctx, conn, "EXPLAIN indexes = 1 ", statement, external, scan)
	}
	if err != nil {
		return nil, nil, err
	}
	err = explain(ctx, conn, "EXPLAIN ESTIMATE ", statement, external, func(rows driver.Rows) error {
		var e Estimate
		var database string
		err := rows.Scan(&database, &e.Table, &e.Parts, &e.Rows, &e.Marks)
		estimates = append(estimates, e)
		return err
	})
	return lines, estimates, err
}

func explain(ctx context.Context, conn driver.Conn, kind string, statement compile.Statement, external []*ext.Table,
	scan func(driver.Rows) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(Settings(statement)), clickhouse.WithExternalTable(external...))
	rows, err := conn.Query(ctx, kind+statement.SQL, arguments(statement)...)
	if err != nil {
		return failure.Of("exec: explain", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return failure.Of("exec: explain", err)
		}
	}
	if err := rows.Err(); err != nil {
		return failure.Of("exec: explain", err)
	}
	return nil
}
