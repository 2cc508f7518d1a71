package snapshot

import (
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
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

// refused reports whether the user lacks a privilege for a statement.
func refused(err error) bool {
	var exception *clickhouse.Exception
	return errors.As(err, &exception) && exception.Code == codeAccessDenied
}
