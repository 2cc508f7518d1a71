package snapshot

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
)

// failures are how many inserts failed since ClickHouse was started, of whatever table. One that fails, as on a full
// disk, may have stored rows of some months that are visible from then on and are not counted. Nobody is told of them,
// so that whatever rests on counts rests on this number too (schema/decisions/failed-inserts.md).
type failures struct {
	n       uint64
	unknown bool // the user may not read it
}

// same reports whether no insert failed between two readings.
func (f failures) same(other failures) bool { return f == other && !f.unknown }

// readFailures is SQL of their number. ClickHouse counts an insert before it takes it off system.processes.
const readFailures = "SELECT sum(value) FROM system.events WHERE event = 'FailedInsertQuery'"

// codeAccessDenied is ClickHouse's ACCESS_DENIED.
const codeAccessDenied = 497

func failedInserts(ctx context.Context, conn driver.Conn) (f failures, err error) {
	if err = conn.QueryRow(OneThread(ctx), readFailures).Scan(&f.n); refused(err) {
		return failures{unknown: true}, nil
	}
	if err != nil {
		return f, failure.Of("read how many inserts failed", err)
	}
	return f, nil
}

// refused reports whether the user lacks a privilege for a statement.
func refused(err error) bool {
	var exception *clickhouse.Exception
	return errors.As(err, &exception) && exception.Code == codeAccessDenied
}
