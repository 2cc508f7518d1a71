package rollup

import (
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// within is the condition that a row was stored in the span.
func within(storedAt string) string {
	return storedAt + " > fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND " + storedAt +
		" <= fromUnixTimestamp64Milli({until:Int64}, 'UTC')"
}

// span are the parameters of within: from exclusive, until inclusive.
func span(from, until time.Time) []any {
	return []any{clickhouse.Named("from", from.UnixMilli()), clickhouse.Named("until", until.UnixMilli())}
}
