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
	Database string `ch:"database"`
	Table    string `ch:"table"`
	Parts    uint64 `ch:"parts"`
	Marks    uint64 `ch:"marks"`
	Rows     uint64 `ch:"rows"`
}

// Explain returns ClickHouse's plan of a statement, a line each, with what its indexes leave. Where ClickHouse knows
// EXPLAIN ANALYZE (26.7 does, 26.1 does not), the statement runs once more, and the plan says what each step took.
func Explain(
	ctx context.Context, conn driver.Conn, statement compile.Statement, external ...*ext.Table,
) (lines []string, estimates []Estimate, err error) {
	explain := func(kind string, into any) error {
		ctx := clickhouse.Context(ctx, clickhouse.WithSettings(settingsOf(statement)),
			clickhouse.WithExternalTable(external...))
		if err := conn.Select(ctx, into, kind+statement.SQL, arguments(statement)...); err != nil {
			return failure.Of("exec: explain", err)
		}
		return nil
	}
	var plan []struct {
		Line string `ch:"explain"`
	}
	if err = explain("EXPLAIN ANALYZE ", &plan); err != nil {
		err = explain("EXPLAIN indexes = 1 ", &plan)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, p := range plan {
		lines = append(lines, strings.TrimRight(p.Line, " "))
	}
	err = explain("EXPLAIN ESTIMATE ", &estimates)
	return lines, estimates, err
}
